#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include <zkrecipes/testenv/scratch.hpp>

#include "chaos/board.hpp"
#include "chaos/register_server.hpp"
#include "chaos/round_judge.hpp"
#include "chaos/stage.hpp"

namespace zkrecipes::chaos {

struct RoundOptions {
    int number = 1;
    std::uint64_t seed = 0;
    std::vector<Recipe> recipes;
    /// One after the other; those in one group begin together.
    std::vector<std::vector<const Nemesis*>> faults;
    int clients = 4;  // processes with a session and a thread for each recipe
    int zklocks = 3;  // processes that run zklock
    std::chrono::milliseconds timeout{4000};
    bool control = false;  // naive clients are there, too
    bool brief = false;    // no fault lasts longer than it must so that sessions end
    /// Nobody waits for longer than this once all is well.
    std::chrono::milliseconds patience{60'000};
};

/// One fault as it was met.
struct Met {
    std::string nemesis;
    Stamp begun = 0;
    Stamp healed = 0;
    Stamp recovered = 0;  // every lock was granted again; 0: not in time
    std::string failed;   // it could not be done, and why
};

/// Somebody who waited for too long after all was well.
struct Stuck {
    int lock;  // -1: nobody knows
    std::string text;
};

struct RoundResult {
    RoundRecord record;
    RoundVerdict verdict;
    std::vector<Met> met;
    std::vector<Stuck> stuck;
    std::vector<std::string> left;       // nodes and processes
    std::vector<std::string> disagreed;  // nodes that some servers show and others do not, for good
    std::vector<std::string> excused;    // who was stuck on the locks of such a recipe
    std::vector<std::string> errors;     // of clients
    int controls = 0;                    // naive clients that were tried …
    int caught = 0;                      // … and that were caught

    bool clean() const { return verdict.clean() && stuck.empty() && left.empty() && errors.empty(); }
};

/// One round: new clients on new locks meet some faults, finish, and are judged.
class Round {
public:
    Round(Arena& arena, const RoundOptions& options);
    ~Round();
    RoundResult run();

private:
    void start(Party& party);
    void meet(const std::vector<const Nemesis*>& group);
    bool await_grants_since(Stamp since);
    void finish();
    void look_for_leftovers();
    void excuse_waiters_where_servers_disagree();
    void judge();
    void wait_a_little(int at_most_ms);

    Arena& arena_;
    const RoundOptions options_;
    const std::string dir_;
    const std::string tag_;
    std::mt19937_64 random_;
    testenv::Scratch scratch_;
    RegisterServer register_;
    Board board_;
    std::vector<Party> parties_;
    int next_actor_ = 0;
    Control control_;
    RoundResult result_;
    Stage stage_;
};

}  // namespace zkrecipes::chaos
