#pragma once

namespace zkrecipes::zklock {

// For a process that was just forked: plain system calls only. Where the kernel has no close_range (before Linux 5.11),
// or a filter of system calls forbids it, they go through /proc/self/fd. False: that cannot be read either.

/// Closes every descriptor from `first` on.
bool close_from(unsigned first) noexcept;

/// Marks the descriptors `first` to `last` close-on-exec.
bool close_on_exec(unsigned first, unsigned last) noexcept;

// Not only there:

/// What the system has yet to say about what was written to `fd`, as some file systems do only when it is closed:
/// errno, or 0. It stays open.
int late_write_error(int fd) noexcept;

/// Puts /dev/null in the place of those of 0, 1 and 2 that are closed, or what is opened next would be stdin, stdout or
/// stderr. Turned the wrong way: reading from it, or writing to it, fails as it would have. False: there is no
/// /dev/null.
bool fill_standard_descriptors() noexcept;

}  // namespace zkrecipes::zklock
