#pragma once

#include <string>

namespace zkrecipes::zklock {

/// Writes all of `text` to standard output, however slow the reader is. Throws Failure if that fails.
void print(const std::string& text);
/// Throws the Failure of print() for this errno.
[[noreturn]] void cannot_print(int error);
/// The last step of writing to standard output; print() includes it. Throws Failure.
void finish_printing();

}  // namespace zkrecipes::zklock
