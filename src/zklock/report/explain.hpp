#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <zkrecipes/error.hpp>

#include "zklock/command_line/options.hpp"

namespace zkrecipes::zklock {

/// The problem and its remedy, in the terms of zklock's users. The library's own message names its classes, functions
/// and options.
std::string in_words(const Error& error, const Options& options);

/// Which nodes an access list forbids to read, and the remedy. Names at most so many of the paths, and counts the rest.
std::string forbids_reading(const std::vector<std::string>& paths, const Options& options, std::size_t named);

/// The same as in_words() with the exit code and the outcome. For a refused setting it names the option, or the file
/// and line.
Failure failure_of(const Error& error, const Options& options);

/// The setting that states the servers' tick.
std::string origin_of_tick(const Options& options);

/// A log line of the library without its session, in the terms of zklock's users.
std::string in_words(const std::string& line, const std::string& origin_of_tick);

/// The cause in an error line of the library why no server confirms a lock; empty: the line is about something else.
std::string why_unconfirmed(const std::string& line, const std::string& origin_of_tick);

}  // namespace zkrecipes::zklock
