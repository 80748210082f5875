#pragma once

#include <string>

#include <zkrecipes/error.hpp>

#include "zklock/command_line/options.hpp"

namespace zkrecipes::zklock {

/// The problem and its remedy, in the terms of zklock's users. The library's own message names its classes, functions
/// and options.
std::string in_words(const Error& error, const Options& options);

/// The same with the exit code and the outcome. For a refused setting it names the option, or the file and line.
Failure failure_of(const Error& error, const Options& options);

}  // namespace zkrecipes::zklock
