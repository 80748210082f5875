#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zkrecipes::internal {

/// The number of leases of a semaphore, as one recipe object knows it. Shared by the calls of the object; read and
/// written under the session lock.
///
/// The data of the directory of leases hold the number. The first client that takes a lease writes its own number, and
/// later clients must name the same. From then on the object follows the number in the same directory, because a change
/// at run time applies to all objects that were in use before it.
struct SemaphoreTerms {
    std::int32_t limit = 1;
    bool follows = true;         // false: the recipe knows one number only
    std::int64_t directory = 0;  // czxid of the directory in which the number was found; 0: not yet
    bool writable = true;        // no server has refused to set the data of a new lease
};

/// {"v":1,"leases":5}
std::string write_limit(std::int32_t limit);
/// Empty: not what write_limit() writes, or not a number of leases.
std::optional<std::int32_t> read_limit(std::string_view data);

}  // namespace zkrecipes::internal
