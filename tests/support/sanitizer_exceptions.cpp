// Tells ThreadSanitizer how threads share an exception. Each std::exception_ptr and each catch block counts as one
// owner, and who leaves last deletes the exception. The count is an atomic variable inside libstdc++, which is not
// instrumented: without this file, a thread that deletes the exception seems to race with one that read it earlier.
//
// Part of every program of a ThreadSanitizer build (cmake/zkrecipes_targets.cmake), and itself compiled without it. It
// stands in front of the two functions of libstdc++ that give up an owner's share.
#include <cxxabi.h>
#include <sanitizer/tsan_interface.h>

#include <exception>

#include "hidden_function.hpp"

void std::__exception_ptr::exception_ptr::_M_release() noexcept {
    static auto* const real_release =
        hidden_function<void(exception_ptr*)>("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");
    if (_M_exception_object != nullptr) {
        __tsan_acquire(_M_exception_object);
        __tsan_release(_M_exception_object);
    }
    real_release(this);
}

extern "C" void __cxxabiv1::__cxa_end_catch() {
    static auto* const real_end_catch = hidden_function<void()>("__cxa_end_catch");
    std::current_exception();  // an owner that comes and goes: by the function above
    real_end_catch();
}
