#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zkrecipes::zklock {

/// The options of a command for CLI11, but of them only those that these words may name: CLI11 compares each new option
/// with all the others, which would take as long as connecting to a server.
class OptionTable : public CLI::App {
public:
    /// `words`: null: all options.
    OptionTable(std::string description, std::string name, const std::vector<std::string>* words)
        : App(std::move(description), std::move(name)), words_(words && asks_for_help(*words) ? nullptr : words) {}

    template <class... Rest>
    CLI::Option* add_option(const std::string& names, Rest&&... rest) {
        return may_be_named(names) ? App::add_option(names, std::forward<Rest>(rest)...) : unused_;
    }
    template <class... Rest>
    CLI::Option* add_option_function(const std::string& names, Rest&&... rest) {
        return may_be_named(names) ? App::add_option_function<std::string>(names, std::forward<Rest>(rest)...)
                                   : unused_;
    }
    template <class... Rest>
    CLI::Option* add_flag(const std::string& names, Rest&&... rest) {
        return may_be_named(names) ? App::add_flag(names, std::forward<Rest>(rest)...) : unused_;
    }
    bool given(const std::string& name) const {
        const CLI::Option* const option = get_option_no_throw(name);
        return option && option->count() > 0;
    }

private:
    static bool asks_for_help(const std::vector<std::string>& words) {
        return std::any_of(words.begin(), words.end(),
                           [](const std::string& word) { return names(word, "--help,-h"); });
    }
    bool may_be_named(const std::string& option) const {
        return !words_ || std::any_of(words_->begin(), words_->end(),
                                      [&](const std::string& word) { return names(word, option); });
    }
    /// Whether the word may name this option, such as "-w,--timeout". An operand is named by its place.
    static bool names(const std::string& word, const std::string& option) {
        if (!option.starts_with('-')) return true;
        for (std::size_t begin = 0; begin < option.size();) {
            const std::size_t end = std::min(option.find(',', begin), option.size());
            const std::string_view name(option.data() + begin, end - begin);
            const bool is_long = name.starts_with("--");
            if (is_long && word.starts_with(name) && (word.size() == name.size() || word[name.size()] == '='))
                return true;
            const bool is_short = word.starts_with('-') && !word.starts_with("--");
            if (!is_long && is_short && word.find(name[1], 1) != std::string::npos) return true;  // "-nq"
            begin = end + 1;
        }
        return false;
    }

    const std::vector<std::string>* const words_;
    CLI::App others_;
    CLI::Option* const unused_ = others_.add_option("--unused");
};

}  // namespace zkrecipes::zklock
