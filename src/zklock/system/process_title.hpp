#pragma once

namespace zkrecipes::zklock {

/// What ps shows of this process from now on. Overwrites the arguments and the environment that it was started with:
/// only for a process that was forked off and executes no other program. Async-signal-safe. Where /proc cannot be read,
/// the title stays.
void set_process_title(const char* title) noexcept;

}  // namespace zkrecipes::zklock
