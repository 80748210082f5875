#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <zkrecipes/error.hpp>
#include <zkrecipes/result.hpp>

namespace zkrecipes::internal {

/// What an asynchronous call tells its caller.
template <class T>
Result<T> to_result(T value, const std::optional<Error>& error) {
    if (error) return {T{}, std::make_exception_ptr(*error)};
    return {std::move(value), nullptr};
}

/// Throws Error bad_option for a callable that is empty.
template <class Signature>
void check_callable(const std::function<Signature>& callable, const char* operation, const std::string& path) {
    if (!callable) throw Error(Errc::bad_option, operation, path, "the callback is empty; pass a callable");
}

}  // namespace zkrecipes::internal
