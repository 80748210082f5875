#pragma once

#include <cstdint>
#include <set>
#include <string>

#include <zkrecipes/testenv/zk_server.hpp>

namespace zkrecipes::bench {

/// A line of /proc/PID/status: VmRSS, VmHWM, Threads …
int kib_of(int pid, const std::string& what);
/// Processor time of the process so far.
std::int64_t processor_milliseconds(int pid);
/// The sum of numbers that the server answers to "mntr".
std::int64_t mntr(const testenv::ZkServer& server, const std::set<std::string>& names);

}  // namespace zkrecipes::bench
