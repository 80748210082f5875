#pragma once

#include <string>

#include <zkrecipes/error.hpp>

#include "zklock/command_line/options.hpp"

namespace zkrecipes::zklock {

/// What went wrong and what to do about it, in the words of somebody who runs zklock: the library speaks of its
/// classes, functions and options.
std::string in_words(const Error& error, const Options& options);

/// The same with the exit code and the outcome. Of a refused setting it names the option, or the file and line.
Failure failure_of(const Error& error, const Options& options);

}  // namespace zkrecipes::zklock
