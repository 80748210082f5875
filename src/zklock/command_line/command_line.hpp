#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class Option;
class FormatterBase;
}  // namespace CLI

#include "zklock/command_line/command_table.hpp"

namespace zkrecipes::zklock {

/// The words of a command line.
struct CommandLine {
    std::vector<std::size_t> operands;  ///< indices of the words that are neither options nor their values
    std::string unknown;                ///< the first unknown option; the words after it are not read
    std::string without_value;          ///< the first option that needs a value, at the end of the line
    std::string lone_equals;            ///< the first "--option="
};

/// Finds the option of this name, such as "-w" or "--timeout"; nullptr: none.
using FindOption = std::function<const CLI::Option*(const std::string&)>;
/// Reads the words as CLI11 does. `first_operand_only`: stops after the first operand, because the words after it
/// belong to the command.
CommandLine read_words(const std::vector<std::string>& words, const FindOption& find, bool first_operand_only);

/// The formatter of the help. It prints the synopsis with COMMAND, which CLI11 does not know.
std::shared_ptr<CLI::FormatterBase> help_formatter(const Word& word);

}  // namespace zkrecipes::zklock
