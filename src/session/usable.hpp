#pragma once

#include <memory>
#include <string>

#include <zkrecipes/deadline.hpp>

#include "session/session_core.hpp"

namespace zkrecipes::internal {

// What the public classes begin their functions with. An Impl has a core, a path() and kName, the name of its class.

/// Throws Error closed for an object that was moved from, or belongs to the parent process.
template <class Impl>
std::shared_ptr<Impl> usable(const std::shared_ptr<Impl>& impl, const char* operation) {
    if (impl == nullptr) check_usable(nullptr, Impl::kName, operation);
    check_usable(impl->core.get(), Impl::kName, operation, impl->path());
    return impl;
}

/// For functions that must not throw: null for such an object.
template <class Impl>
std::shared_ptr<Impl> usable_or_null(const std::shared_ptr<Impl>& impl) noexcept {
    return impl == nullptr || impl->core->inherited() ? nullptr : impl;
}

/// The time at which a call with this timeout gives up.
template <class Impl>
Deadline deadline_in(const std::shared_ptr<Impl>& impl, Timeout timeout, const char* operation) {
    return Deadline::after(usable(impl, operation)->core->runtime().steady_now(), timeout);
}

/// Empty for an object that was moved from.
template <class Impl>
const std::string& path_of(const std::shared_ptr<Impl>& impl) noexcept {
    static const auto& none = *new std::string;
    return impl == nullptr ? none : impl->path();
}

}  // namespace zkrecipes::internal
