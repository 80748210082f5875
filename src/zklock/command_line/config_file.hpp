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

/// Reads lines "key = value", optionally below a line "[zklock]". A comment begins with # or ; at the start of a line
/// or after a blank, since a path or a secret may contain either. A value in single or double quotes is taken
/// literally; elsewhere blanks after a comma are ignored. Only the prefix may be empty. Throws Failure 78, which names
/// `path` and the line and repeats nothing that could be a secret.
std::map<std::string, ConfigValue> read_config(std::string_view text, const std::string& path);

}  // namespace zkrecipes::zklock
