#include "zklock/command_line/command_line.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace zkrecipes::zklock {
namespace {

bool takes_value(const CLI::Option& option) { return option.get_expected_min() > 0; }

class WordReader {
public:
    WordReader(const std::vector<std::string>& words, const FindOption& find) : words_(words), find_(find) {}

    CommandLine read(bool first_operand_only) {
        for (; at_ < words_.size() && found_.unknown.empty(); ++at_) {
            const std::string& word = words_[at_];
            if (!only_operands_ && word == "--") {
                if (first_operand_only) break;
                only_operands_ = true;
            } else if (!only_operands_ && word.starts_with("--")) {
                long_option(word);
            } else if (!only_operands_ && word.starts_with('-') && word.size() > 1) {
                short_options(word);
            } else {
                found_.operands.push_back(at_);
                if (first_operand_only) break;
            }
        }
        return std::move(found_);
    }

private:
    void long_option(const std::string& word) {
        const std::size_t equals = word.find('=');
        const std::string name = word.substr(0, equals);
        const CLI::Option* const option = find_(name);
        if (!option) {
            found_.unknown = name;
        } else if (takes_value(*option) && equals == std::string::npos) {
            skip_value(name);
        } else if (takes_value(*option) && equals + 1 == word.size() && found_.lone_equals.empty()) {
            found_.lone_equals = word;
        }
    }

    /// "-n", "-nq", "-w5", "-w" "5".
    void short_options(const std::string& word) {
        for (std::size_t i = 1; i < word.size(); ++i) {
            const std::string name = {'-', word[i]};
            const CLI::Option* const option = find_(name);
            if (!option) {
                found_.unknown = name;
                return;
            }
            if (!takes_value(*option)) continue;
            if (i + 1 == word.size()) skip_value(name);
            return;
        }
    }

    void skip_value(const std::string& name) {
        if (++at_ >= words_.size()) found_.without_value = name;
    }

    const std::vector<std::string>& words_;
    const FindOption& find_;
    CommandLine found_;
    std::size_t at_ = 0;
    bool only_operands_ = false;
};

/// Prints the synopsis with COMMAND, which CLI11 does not know.
class HelpFormatter final : public CLI::Formatter {
public:
    explicit HelpFormatter(const Word& word) : word_(word) {}
    std::string make_usage(const CLI::App*, std::string) const override {
        return std::string("\nUsage:\n") + word_.synopsis + word_.arguments;
    }

private:
    const Word& word_;
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter(const Word& word) { return std::make_shared<HelpFormatter>(word); }

CommandLine read_words(const std::vector<std::string>& words, const FindOption& find, bool first_operand_only) {
    return WordReader(words, find).read(first_operand_only);
}

}  // namespace zkrecipes::zklock
