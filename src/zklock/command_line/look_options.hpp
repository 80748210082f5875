#pragma once

#include <cstddef>
#include <string>

#include "zklock/command_line/options.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace zkrecipes::zklock {

/// How many operands the command takes; run and elect take LOCK and a command of any length.
std::size_t most_operands(Command command) noexcept;

/// The options of the commands that look at locks or break them. CLI11 fills in the texts, and take() converts them.
class LookOptions {
public:
    /// `options` must live as long as `app`.
    void add(CLI::App& app, Options& options);
    /// Those after LOCK.
    void add_operands(CLI::App& app, Options& options);
    /// What is wrong with the combination, to be shown with the synopsis; empty: nothing. Throws Failure for a wrong
    /// value.
    std::string take(Options& options) const;

private:
    void take_pictures(Options& options) const;

    const CLI::Option* leases_given_ = nullptr;
    std::string leases_, pictures_, interval_;
    bool once_ = false;
};

}  // namespace zkrecipes::zklock
