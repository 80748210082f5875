#pragma once

#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>
#include <zkrecipes/testenv/gate.hpp>

#include "chaos/actor_process.hpp"
#include "chaos/arena.hpp"
#include "chaos/plan.hpp"
#include "chaos/round_judge.hpp"

namespace zkrecipes::chaos {

/// One client process with a way of its own to each server.
struct Party {
    int actor = 0;
    bool zklock = false;  // it runs processes of zklock, which hold
    std::string clock;    // the file of its wall clock
    std::vector<testenv::Gate> gates;
    std::unique_ptr<ActorProcess> process;
};

/// Two naive clients of which one is to be caught: it trusts the answers of the one server that it knows. Its lock is
/// kControlLock.
class Control {
public:
    Control(const Board& board, Arena& arena, const std::string& dir, int actor) noexcept
        : board_(board), arena_(arena), dir_(dir), actor_(actor) {}

    /// The holder gets the lock and knows only `member`; the other one knows only the rest, and waits.
    void begin(int member);
    /// When the fault is over: waits until the other one has been granted the lock, and ends both.
    void end();
    int tried() const noexcept { return tried_; }

private:
    std::unique_ptr<ActorProcess> start(const std::string& hosts);

    const Board& board_;
    Arena& arena_;
    const std::string dir_;
    int actor_;
    int tried_ = 0;
    std::unique_ptr<ActorProcess> holder_;
    std::unique_ptr<ActorProcess> waiter_;
};

/// All that a nemesis may touch in one round.
struct Stage {
    Arena& arena;
    std::vector<Party>& parties;
    std::mt19937_64& random;
    std::vector<Recipe> recipes;
    std::string dir;  // of the locks
    std::chrono::milliseconds timeout{0};
    std::vector<Excuse>& excuses;
    std::set<int>& killed;
    std::function<void(Party&)> restart;  // a new process for a party whose process was killed
    Control* control = nullptr;           // empty: none in this round

    int any(int end) { return static_cast<int>(random() % static_cast<std::uint64_t>(end)); }
    Party& any_party() { return parties[static_cast<std::size_t>(any(static_cast<int>(parties.size())))]; }
};

/// Something that goes wrong for a while.
struct Nemesis {
    using Heal = std::function<void()>;

    const char* name;
    const char* what;
    bool on_servers;  // of these only one at a time
    /// Does it, and answers how to undo it. `span` is how long it will last.
    Heal (*begin)(Stage& stage, std::chrono::milliseconds span);
};

/// All of them; "reaper" does nothing here, because it is how an arena is made.
const std::vector<Nemesis>& nemeses();
const Nemesis* nemesis_named(const std::string& name);

}  // namespace zkrecipes::chaos
