#pragma once

#include <string>
#include <vector>

#include "zklock/command_line/options.hpp"

namespace zkrecipes::zklock {

/// A word that may stand first on the command line.
struct Word {
    const char* text;
    Command command;
    const char* synopsis;   ///< one line for each way to write it
    const char* arguments;  ///< what the help says of what follows the options, if anything
    const char* summary;
};
extern const std::vector<Word> kWords;

/// nullptr: there is no such command.
const Word* find_word(const std::string& text);
/// What to write, of all commands.
std::string synopsis();
std::string general_help();

/// With commas between them.
std::string joined(const std::vector<std::string>& parts);
/// `; did you mean "..."?` when one of `known` is `typed` with a slip or two in it, otherwise empty.
std::string did_you_mean(const std::string& typed, const std::vector<std::string>& known);
/// Throws Failure when `lock` cannot be the path of a lock, and says what to write.
void check_lock(const std::string& lock);

}  // namespace zkrecipes::zklock
