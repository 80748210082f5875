#pragma once

#include <string>

#include "zklock/command_line/options.hpp"

namespace zkrecipes::zklock {

class OptionTable;

/// The options that say whether a command runs at all, and what else happens around it.
class RunOptions {
public:
    /// Adds those of this command of zklock. The object must outlive `app`.
    void add_to(OptionTable& app, Command command);
    /// Takes their values after the command line was parsed. Throws Failure.
    void take(const OptionTable& app, Options& options) const;

private:
    std::string once_per_, on_lost_, on_lost_timeout_;
    bool retry_unknown_ = false, whole_tree_ = false, notify_ = false;
};

}  // namespace zkrecipes::zklock
