#pragma once

namespace zkrecipes::zklock {

/// Sets the title that ps shows for this process. Overwrites the arguments and the environment: only for a forked
/// process that never executes another program. Async-signal-safe. If /proc cannot be read, the title does not change.
void set_process_title(const char* title) noexcept;

}  // namespace zkrecipes::zklock
