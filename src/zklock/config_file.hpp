#pragma once

#include <iosfwd>
#include <map>
#include <string>

namespace zkrecipes::zklock {

/// Reads lines "key = value", perhaps below a line "[zklock]". A comment begins with # or ; at the beginning of a line
/// or behind a blank: a path or a secret may hold either. A value in quotes, single or double, is taken as it stands;
/// elsewhere blanks behind a comma do not count. Throws Failure 78, which names `path` and the line.
std::map<std::string, std::string> read_config(std::istream& stream, const std::string& path);

}  // namespace zkrecipes::zklock
