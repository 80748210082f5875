#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "chaos/round.hpp"

namespace zkrecipes::chaos {

/// What came out of all rounds so far, and the table of it.
class Tally {
public:
    void add(const RoundResult& result, std::chrono::nanoseconds took);
    /// What could not be arranged on this machine.
    void add_missing(const std::string& nemesis, const std::string& reason) { missing_[nemesis] = reason; }
    void add_failure() { ++failures_; }

    void print() const;
    bool clean() const;

private:
    struct NemesisRow {
        int times = 0;
        int failed = 0;
        Stamp lasted = 0;
        Stamp slowest = 0;  // from its end to a grant of every lock
        int holds = 0;      // that were there while it lasted
    };
    struct RecipeRow {
        RoundVerdict::Lock sum;
        std::int64_t unjudged = 0;  // plain increments of locks that were taken away by force
    };
    void print_nemeses() const;
    void print_recipes() const;

    std::map<std::string, NemesisRow> nemeses_;
    std::map<Recipe, RecipeRow> recipes_;
    std::map<std::string, std::string> missing_;
    std::map<std::string, std::string> reasons_;  // why a fault could not be done, the last time
    std::chrono::nanoseconds took_{0};
    int rounds_ = 0;
    int controls_ = 0;
    int caught_ = 0;
    std::size_t findings_ = 0;
    std::size_t stuck_ = 0;
    std::size_t excused_ = 0;
    int disagreed_ = 0;
    std::size_t left_ = 0;
    std::size_t errors_ = 0;
    int failures_ = 0;
};

}  // namespace zkrecipes::chaos
