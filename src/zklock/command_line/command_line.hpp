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

/// What stands where on a command line.
struct CommandLine {
    std::vector<std::size_t> operands;  ///< places of the words that are neither options nor their values
    std::string unknown;                ///< the first option that is not known; nothing behind it is looked at
    std::string without_value;          ///< the first option that needs a value, at the end of the line
    std::string lone_equals;            ///< the first "--option="
};

/// The option of this name, such as "-w" or "--timeout"; nullptr: there is none.
using FindOption = std::function<const CLI::Option*(const std::string&)>;
/// Reads the words as CLI11 does. `first_operand_only`: what follows that belongs to somebody else, as a lock's
/// command.
CommandLine read_words(const std::vector<std::string>& words, const FindOption& find, bool first_operand_only);

/// Of the help: shows what to write, with COMMAND, of which CLI11 knows nothing.
std::shared_ptr<CLI::FormatterBase> help_formatter(const Word& word);

}  // namespace zkrecipes::zklock
