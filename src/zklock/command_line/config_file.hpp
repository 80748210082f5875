#pragma once

#include <map>
#include <string>
#include <string_view>

namespace zkrecipes::zklock {

struct ConfigValue {
    std::string text;
    int line = 0;
};

/// "PATH, line N".
std::string at_line(const std::string& path, int line);

/// Takes lines "key = value", perhaps below a line "[zklock]". A comment begins with # or ; at the beginning of a line
/// or behind a blank: a path or a secret may hold either. A value in quotes, single or double, is taken as it stands;
/// elsewhere blanks behind a comma do not count. Only a prefix may be empty. Throws Failure 78, which names `path` and
/// the line, and repeats nothing that might be a secret.
std::map<std::string, ConfigValue> read_config(std::string_view text, const std::string& path);

}  // namespace zkrecipes::zklock
