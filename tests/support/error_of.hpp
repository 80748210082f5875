#pragma once

#include <gtest/gtest.h>

#include <zkrecipes/error.hpp>

namespace zkrecipes::test {

/// The Error that a call throws. Fails where it throws nothing.
template <class Call>
Error error_of(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return Error(Errc::protocol, "nothing was thrown", "");
}

}  // namespace zkrecipes::test
