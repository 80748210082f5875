#pragma once

#include <string>

#include <boost/json/fwd.hpp>

namespace zkrecipes::zklock {

/// The object on one line. It is valid JSON whatever the strings hold: bytes that are not UTF-8 become U+FFFD, and
/// characters that could steer a terminal are escaped.
std::string dump(const boost::json::object& object);

/// Adds the members of `more` to `object`; they replace those of the same name.
void merge(boost::json::object& object, const boost::json::object& more);

}  // namespace zkrecipes::zklock
