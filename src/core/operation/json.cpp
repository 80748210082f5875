#include "core/operation/json.hpp"

#include <utility>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

namespace zkrecipes::internal {

std::optional<boost::json::object> parse_json_object(std::string_view text) {
    boost::json::parse_options options;
    options.max_depth = 16;
    boost::system::error_code error;
    boost::json::value value = boost::json::parse({text.data(), text.size()}, error, {}, options);
    if (error || !value.is_object()) return std::nullopt;
    return std::move(value.get_object());
}

std::string string_member(const boost::json::object& object, std::string_view name) {
    const boost::json::value* value = object.if_contains({name.data(), name.size()});
    const boost::json::string* text = value ? value->if_string() : nullptr;
    return text ? std::string(text->data(), text->size()) : std::string();
}

std::optional<std::int64_t> integer_member(const boost::json::object& object, std::string_view name) {
    const boost::json::value* value = object.if_contains({name.data(), name.size()});
    const std::int64_t* number = value ? value->if_int64() : nullptr;
    return number ? std::optional(*number) : std::nullopt;
}

}  // namespace zkrecipes::internal
