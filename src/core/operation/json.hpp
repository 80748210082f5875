#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

namespace zkrecipes::internal {

/// The JSON object in the data of a node, which anybody may have written. Empty if `text` is anything else, holds bytes
/// that are not UTF-8, or nests objects and arrays more than 16 deep.
std::optional<boost::json::object> parse_json_object(std::string_view text);

/// Empty if the member is missing or is not a string.
std::string string_member(const boost::json::object& object, std::string_view name);
/// Empty if the member is missing, is not an integer, or does not fit.
std::optional<std::int64_t> integer_member(const boost::json::object& object, std::string_view name);

}  // namespace zkrecipes::internal
