#pragma once

#include <initializer_list>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json.hpp>

namespace zkrecipes::zklock {

/// Output of zklock, for tests to look into. A member or an element that is missing reads as null.
class Json {
public:
    Json() = default;
    explicit Json(boost::json::value value) : value_(std::move(value)) {}
    /// Throws if `text` is not JSON.
    static Json parse(const std::string& text) { return Json(boost::json::parse(text)); }
    /// Null if it is not.
    static Json parse_or_null(const std::string& text) {
        boost::system::error_code error;
        boost::json::value value = boost::json::parse(text, error);
        return error ? Json() : Json(std::move(value));
    }

    Json operator[](std::string_view member) const {
        const auto* object = value_.if_object();
        const auto* found = object ? object->if_contains(member) : nullptr;
        return found ? Json(*found) : Json();
    }
    Json operator[](std::size_t index) const {
        const auto* array = value_.if_array();
        return array && index < array->size() ? Json((*array)[index]) : Json();
    }
    bool contains(std::string_view member) const { return value_.is_object() && value_.get_object().contains(member); }
    std::size_t size() const { return value_.is_array() ? value_.get_array().size() : 0; }
    bool is_null() const { return value_.is_null(); }
    bool is_array() const { return value_.is_array(); }
    bool is_object() const { return value_.is_object(); }
    std::string text() const { return std::string(value_.as_string()); }
    template <class Number>
    Number number() const {
        return value_.to_number<Number>();
    }

    friend bool operator==(const Json& a, const Json& b) { return a.value_ == b.value_; }
    template <class Value>
    friend bool operator==(const Json& json, const Value& expected) {
        return json.value_ == boost::json::value(expected);
    }
    friend bool operator>(const Json& json, std::int64_t bound) {
        return json.value_.to_number<std::int64_t>() > bound;
    }
    friend std::ostream& operator<<(std::ostream& out, const Json& json) { return out << json.value_; }

private:
    boost::json::value value_;
};

}  // namespace zkrecipes::zklock
