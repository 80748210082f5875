#pragma once

#include <exception>

#include <zkrecipes/grant.hpp>

namespace zkrecipes {

/// How an asynchronous acquire ended: with a grant; empty without error (timed out or stopped); or with an error.
struct AcquireResult {
    Grant grant;
    std::exception_ptr error;  ///< an Error, or null
};

}  // namespace zkrecipes
