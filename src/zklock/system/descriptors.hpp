#pragma once

namespace zkrecipes::zklock {

// For a process that was just forked: plain system calls only. Without close_range (before Linux 5.11, or a system call
// filter forbids it) they read /proc/self/fd. False: that cannot be read either.

/// Closes every descriptor from `first` on.
bool close_from(unsigned first) noexcept;

/// Marks the descriptors `first` to `last` close-on-exec.
bool close_on_exec(unsigned first, unsigned last) noexcept;

// For any process:

/// The late error of earlier writes to `fd`, which some file systems report only on close: an errno, or 0. `fd` stays
/// open.
int late_write_error(int fd) noexcept;

/// Opens /dev/null for each closed one of 0, 1 and 2; otherwise the next file that is opened would become stdin, stdout
/// or stderr. The direction is the wrong one, so that reads and writes still fail. False: /dev/null cannot be opened.
bool fill_standard_descriptors() noexcept;

}  // namespace zkrecipes::zklock
