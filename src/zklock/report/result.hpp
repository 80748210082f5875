#pragma once

#include <string>
#include <vector>

#include <boost/json/fwd.hpp>

namespace zkrecipes::zklock {

class Console;
class EventLog;
struct Options;

/// The JSON fields of the lock: "path", and "node" if it is held; of a set "locks", each with these and "mode".
boost::json::object lock_fields(const Options& options, const std::vector<std::string>& nodes);
/// The fields of every result.
boost::json::object result_object(const Options& options, const char* outcome, int code,
                                  const std::vector<std::string>& nodes = {});
/// Throws Failure if the file of --result cannot be written, and then clears options.result. Called before anything
/// starts.
void require_result(Options& options);
/// Writes the object to the file of --result, if any. False: it cannot be written, and the console says so.
bool report(const Options& options, Console& console, const boost::json::object& object);
/// The last step of a command that ran: writes the result and returns the exit code. The code of the object has
/// precedence. If it is 0, but the result or an event cannot be written, the code is kIoError.
int conclude(const Options& options, Console& console, EventLog& events, boost::json::object object);
/// Writes the result of the exception that is being handled. False: it cannot be written.
bool report_failure(const Options& options);

}  // namespace zkrecipes::zklock
