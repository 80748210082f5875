#include "zklock/config_file.hpp"

#include <istream>
#include <string_view>

#include "zklock/options.hpp"

namespace zkrecipes::zklock {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";

std::string_view trim(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

bool is_comment(std::string_view text) { return text.starts_with('#') || text.starts_with(';'); }

/// Up to a comment behind a blank.
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

class Line {
public:
    Line(std::string_view text, const std::string& path, int number) : text_(text), path_(path), number_(number) {}

    [[noreturn]] void refuse(const std::string& problem) const {
        throw Failure(kConfig, path_ + ", line " + std::to_string(number_) + ": " + problem);
    }
    bool empty() const { return text_.empty() || is_comment(text_); }
    bool is_section() const {
        if (!text_.starts_with('[')) return false;
        const std::string_view section = trim(without_comment(text_));
        if (section != "[zklock]") refuse("unknown section " + std::string(section));
        return true;
    }
    std::string key() const { return std::string(trim(text_.substr(0, equals()))); }
    std::string value() const {
        const std::string_view rest = text_.substr(equals() + 1);
        const std::string_view value = trim(rest);
        if (value.starts_with('"') || value.starts_with('\'')) return quoted(value);
        return without_blanks_behind_commas(trim(without_comment(rest)));
    }

private:
    std::size_t equals() const {
        const std::size_t at = text_.find('=');
        if (at == std::string_view::npos) refuse("expected \"setting = value\"");
        return at;
    }
    std::string quoted(std::string_view value) const {
        const std::size_t end = value.find(value.front(), 1);
        if (end == std::string_view::npos) refuse("the closing quote is missing");
        const std::string_view rest = trim(value.substr(end + 1));
        if (!rest.empty() && !is_comment(rest)) refuse("only a comment may stand behind the closing quote");
        return std::string(value.substr(1, end - 1));
    }

    const std::string_view text_;
    const std::string& path_;
    const int number_;
};

}  // namespace

std::map<std::string, std::string> read_config(std::istream& stream, const std::string& path) {
    std::map<std::string, std::string> values;
    int number = 0;
    for (std::string text; std::getline(stream, text);) {
        const Line line(trim(text), path, ++number);
        if (line.empty() || line.is_section()) continue;
        if (!values.try_emplace(line.key(), line.value()).second)
            line.refuse("\"" + line.key() + "\" stands there twice");
    }
    return values;
}

}  // namespace zkrecipes::zklock
