#include "zklock/command_line/config_file.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "zklock/command_line/options.hpp"
#include "zklock/command_line/settings.hpp"

namespace zkrecipes::zklock {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string_view trim(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

bool is_comment(std::string_view text) { return text.starts_with('#') || text.starts_with(';'); }

/// The text before a comment.
std::string_view without_comment(std::string_view text) {
    for (std::size_t i = 1; i < text.size(); ++i) {
        if (is_comment(text.substr(i)) && kBlanks.find(text[i - 1]) != std::string_view::npos) return text.substr(0, i);
    }
    return text;
}

std::string without_blanks_behind_commas(std::string_view text) {
    std::string result;
    for (const char c : text) {
        if (kBlanks.find(c) == std::string_view::npos || !result.ends_with(',')) result.push_back(c);
    }
    return result;
}

/// Other text may be part of a credential, in a file that was meant for --auth-file.
bool may_be_shown(const std::string& key) {
    return key.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == std::string::npos;
}

bool is_setting(const std::string& key) {
    const auto same = [&](const Setting& setting) { return key == setting.key; };
    return key != "config" && std::any_of(std::begin(kSettings), std::end(kSettings), same);
}

class Line {
public:
    Line(std::string_view text, const std::string& path, int number) : text_(text), path_(path), number_(number) {}

    [[noreturn]] void refuse(const std::string& problem) const {
        throw Failure(kConfig, at_line(path_, number_) + ": " + problem);
    }
    bool empty() const { return text_.empty() || is_comment(text_); }
    bool is_section() const {
        if (!text_.starts_with('[')) return false;
        const std::string_view section = trim(without_comment(text_));
        if (section != "[zklock]") refuse("unknown section " + std::string(section));
        return true;
    }
    std::string key() const {
        std::string key(trim(text_.substr(0, equals())));
        if (is_setting(key)) return key;
        refuse("unknown setting" + (may_be_shown(key) ? " \"" + key + "\"" : ""));
    }
    ConfigValue value_of(const std::string& key) const {
        ConfigValue found{value(), number_};
        // An empty value would hide the value of another file. An empty prefix has a meaning.
        if (found.text.empty() && key != "prefix") refuse("\"" + key + "\" has no value");
        return found;
    }

private:
    std::string value() const {
        const std::string_view rest = text_.substr(equals() + 1);
        const std::string_view value = trim(rest);
        if (value.starts_with('"') || value.starts_with('\'')) return quoted(value);
        return without_blanks_behind_commas(trim(without_comment(rest)));
    }
    std::size_t equals() const {
        const std::size_t at = text_.find('=');
        if (at == std::string_view::npos) refuse("expected \"setting = value\"");
        return at;
    }
    std::string quoted(std::string_view value) const {
        const std::size_t end = value.find(value.front(), 1);
        if (end == std::string_view::npos) refuse("the closing quote is missing");
        const std::string_view rest = trim(value.substr(end + 1));
        if (!rest.empty() && !is_comment(rest)) refuse("only a comment may follow the closing quote");
        return std::string(value.substr(1, end - 1));
    }

    const std::string_view text_;
    const std::string& path_;
    const int number_;
};

}  // namespace

std::string at_line(const std::string& path, int line) { return path + ", line " + std::to_string(line); }

std::map<std::string, ConfigValue> read_config(std::string_view text, const std::string& path) {
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    std::map<std::string, ConfigValue> values;
    std::istringstream lines{std::string(text)};
    int number = 0;
    for (std::string one; std::getline(lines, one);) {
        const Line line(trim(one), path, ++number);
        if (line.empty() || line.is_section()) continue;
        const std::string key = line.key();
        if (!values.try_emplace(key, line.value_of(key)).second) line.refuse("\"" + key + "\" is set twice");
    }
    return values;
}

}  // namespace zkrecipes::zklock
