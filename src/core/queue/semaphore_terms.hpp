#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zkrecipes::internal {

/// How many leases a semaphore has, as one recipe object knows it. Shared by its calls; read and written under the
/// session lock.
///
/// The number is agreed on in the data of the directory of leases. The first that takes a lease there writes its own;
/// whoever comes later must name the same. From then on the object follows what is written in the same directory: a
/// change at run time concerns all who were there before it.
struct SemaphoreTerms {
    std::int32_t limit = 1;
    bool follows = true;         // false: the recipe knows one number only
    std::int64_t directory = 0;  // czxid of the directory in which the number was found; 0: not yet
};

/// {"v":1,"leases":5}
std::string write_limit(std::int32_t limit);
/// Empty: not what write_limit() writes, or not a number of leases.
std::optional<std::int32_t> read_limit(std::string_view data);

}  // namespace zkrecipes::internal
