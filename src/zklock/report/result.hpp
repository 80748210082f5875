#pragma once

#include <string>
#include <vector>

#include <boost/json/fwd.hpp>

namespace zkrecipes::zklock {

class Console;
class EventLog;
struct Options;

/// What is told of the lock in JSON: "path", and "node" when it is held; of a set "locks", each with these and "mode".
boost::json::object lock_fields(const Options& options, const std::vector<std::string>& nodes);
/// What every result has.
boost::json::object result_object(const Options& options, const char* outcome, int code,
                                  const std::vector<std::string>& nodes = {});
/// Throws Failure if nothing can be written where --result wants it; then it is forgotten. Before anything is done.
void require_result(Options& options);
/// Where --result wants it, if anywhere. Complains when that cannot be written, and answers false.
bool report(const Options& options, Console& console, const boost::json::object& object);
/// The last step of a command that ran: the result, and the exit code. That is the object's own, if it is not 0, or
/// kIoError when the result or an event could not be written.
int conclude(const Options& options, Console& console, EventLog& events, boost::json::object object);
/// In the handler of what ends zklock, whatever it is: the result of that. False: it cannot be written.
bool report_failure(const Options& options);

}  // namespace zkrecipes::zklock
