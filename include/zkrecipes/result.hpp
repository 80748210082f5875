#pragma once

#include <exception>

#include <zkrecipes/export.hpp>

namespace zkrecipes {

/// How an asynchronous call ended: with what the blocking form of the call would have returned, or with what it would
/// have thrown.
template <class T>
struct Result {
    T value{};                 ///< as the blocking form returns it; meaningless if there is an error
    std::exception_ptr error;  ///< an Error; null if the call did not fail
};

}  // namespace zkrecipes
