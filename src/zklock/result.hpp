#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace zkrecipes::zklock {

class Console;
struct Options;

/// Makes `file` hold this object: a regular file, or none, is replaced in one step if its directory allows that; else,
/// and if it is a device, a pipe or a link, it is written to, and stays what it is. False: could not; errno says why.
bool write_result(const std::string& file, const nlohmann::json& object);
/// What stands in `file` is of another run: takes it away, or empties it, so that nobody mistakes it for this
/// one's.
void forget_result(const std::string& file) noexcept;

/// What every result has.
nlohmann::json result_object(const Options& options, const char* outcome, int code,
                             const std::vector<std::string>& nodes = {});
/// Where --result wants it, if anywhere. Complains when that cannot be written.
void report(const Options& options, Console& console, const nlohmann::json& object);
/// In the handler of what ends zklock, whatever it is: the result of that.
void report_failure(const Options& options);

}  // namespace zkrecipes::zklock
