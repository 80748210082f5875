#pragma once

#include <string>
#include <vector>

#include "zklock/command_line/options.hpp"

namespace zkrecipes::zklock {

/// A word that can begin the command line.
struct Word {
    const char* text;
    Command command;
    const char* synopsis;   ///< one line for each form
    const char* arguments;  ///< text of the help on the operands, or empty
    const char* summary;
};
extern const std::vector<Word> kWords;

/// nullptr: no such command.
const Word* find_word(const std::string& text);
/// The synopsis of all commands.
std::string synopsis();
std::string general_help();

/// Joins the parts with commas.
std::string joined(const std::vector<std::string>& parts);
/// `; did you mean "..."?` if one of `known` begins with `typed` or differs from it by a typing error or two; otherwise
/// empty.
std::string did_you_mean(const std::string& typed, const std::vector<std::string>& known);
/// The same for the words of kWords.
std::string like_a_word(const std::string& typed);
/// Throws Failure if `lock` cannot be the path of a lock. The message says what to write. `after_command`: the name of
/// a command precedes it, so it is not a mistyped one.
void check_lock(const std::string& lock, bool after_command);

}  // namespace zkrecipes::zklock
