#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/history.hpp"
#include "sim/judge.hpp"

namespace zkrecipes::sim {

/// Every write that a call was asked to make, and how often ZooKeeper's own history has it. Each has a number of its
/// own, by which it is known again: it is in the text that is written, or it is what a counter grows by.
class Ledger {
public:
    enum class Outcome {
        open,     // the call has not returned
        done,     // happened, once
        refused,  // never happened, and never will
        unknown   // happened once, or never
    };
    struct Write {
        std::string path;
        std::string who;
        std::int64_t delta = 0;              // of a counter: what is added
        std::optional<std::int64_t> number;  // … or what is written, which no other call writes
        // Of a guarded write: the node of the grant, and its token.
        std::string guard{};
        FencingToken token = 0;
        // ---- the ledger's
        Outcome outcome = Outcome::open;
        int happened = 0;
        bool doubtful = false;               // another write may be the one that is in the history in its place
        std::int64_t before = 0, after = 0;  // of a counter, as it was committed
        std::size_t position = 0;            // in the history of the path
    };
    enum class Kind { text, eight_bytes, four_bytes };

    Ledger(Judge& judge, History& history) : judge_(judge), history_(history) {}

    /// `seed`: what anybody may make the node with when it is missing; numbers: also nothing.
    void keep(const std::string& path, Kind kind, std::string seed = {});
    std::uint64_t next_number() const noexcept { return writes_.size() + 1; }
    std::uint64_t begins(Write write);
    void ends(std::uint64_t number, Outcome outcome);
    /// Until the next write begins.
    const Write& of(std::uint64_t number) const { return writes_[number - 1]; }

    /// Behind History::committed.
    void committed(const Txn& txn, const DataTree& tree);

    static std::string text_of(std::uint64_t number, const std::string& who) {
        return std::to_string(number) + " " + who;
    }
    static std::optional<std::int64_t> number_of(const std::string& data);
    /// Of a counter: a node without data, and none, is 0.
    static std::int64_t value_of(const NodeState& state);

private:
    struct Kept {
        Kind kind = Kind::text;
        std::string seed;
    };
    Write* find(std::uint64_t number);
    void changed(const std::string& path, const Kept& kept, const DataTree& tree);
    Write* writer_of_text(const NodeState& now);
    Write* writer_of_number(const std::string& path, std::int64_t before, std::int64_t after);
    std::vector<Write*> writers_of_an_equal_version(const std::string& path, std::int64_t after);
    Write* adder(const std::string& path, std::int64_t before, std::int64_t after);
    void happens(Write& write, std::uint64_t number);
    void check_guard(const Write& write, const DataTree& tree);

    Judge& judge_;
    History& history_;
    std::map<std::string, Kept> kept_;
    std::vector<Write> writes_;  // the first one has number 1
};

}  // namespace zkrecipes::sim
