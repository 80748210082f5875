#include "bench/crowd_run.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "bench/cases.hpp"
#include "bench/crowd_process.hpp"
#include "bench/floor.hpp"
#include "bench/process_state.hpp"
#include "bench/processes.hpp"

namespace zkrecipes::bench {
namespace {

using std::chrono::milliseconds;
using testenv::Opcode;
using testenv::Record;

constexpr milliseconds kTimeout{10'000};  // of the session
constexpr milliseconds kQuiet{300};
constexpr milliseconds kLook{30};

double seconds_between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

/// The requests of the crowd that passed the gate, without those for other locks of the session.
class Traffic {
public:
    Traffic(const std::vector<Record>& trace, const std::string& directory) {
        std::map<std::pair<std::uint64_t, std::int32_t>, int> unanswered;
        for (const Record& record : trace) {
            const bool reconnects = record.opcode == Opcode::set_watches || record.opcode == Opcode::set_watches2;
            if (!record.path.starts_with(directory) && !reconnects) continue;
            last = record.time;
            if (record.kind == Record::Kind::disconnected) unanswered.clear();
            if (record.kind == Record::Kind::request) {
                ++requests;
                unanswered[{record.connection, record.xid}] = 1;
            } else {
                unanswered.erase({record.connection, record.xid});
            }
        }
        open = static_cast<int>(unanswered.size());
    }
    int requests = 0;
    int open = 0;  ///< not answered
    Clock::time_point last{};
};

/// Watches on nodes below the directory and on itself.
int watches_at(const testenv::ZkServer& server, const std::string& directory) {
    std::istringstream lines(server.four_letter("wchp"));
    int watches = 0;
    bool below = false;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("/")) {
            below = line.starts_with(directory);
        } else if (below && line.starts_with("\t")) {
            ++watches;
        }
    }
    return watches;
}

/// Whether a thread of the process runs or would like to, apart from the one that only looks at the lease.
bool wants_processor(int pid) {
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
        std::ifstream file(task.path() / "stat");
        std::string text;
        std::getline(file, text);
        const auto name_end = text.rfind(')');
        if (name_end == std::string::npos || name_end + 2 >= text.size()) continue;  // it has ended
        if (text[name_end + 2] == 'R' && text.find(kLeaseSampler) == std::string::npos) return true;
    }
    return false;
}

/// All packets that the server has received and sent.
std::int64_t packets_at(const testenv::ZkServer& server) {
    return mntr(server, {"zk_packets_received", "zk_packets_sent"});
}

/// A crowd in a process that takes the commands of CuratorBench.java.
class CrowdRun {
public:
    CrowdRun(Place& place, Process& process, std::string directory, int waiters, std::chrono::seconds limit,
             bool has_other_lock, CrowdFindings& found)
        : place_(place),
          process_(process),
          directory_(std::move(directory)),
          waiters_(waiters),
          limit_(limit),
          has_other_lock_(has_other_lock),
          found_(found),
          holder_(place_.hosts(0), directory_) {
        holder_.make_path(directory_);
        holder_.acquire_free();
    }

    /// Times and memory. Without a gate, which would hold back what the server sends.
    void measure() {
        least_lease();
        const int before = kib_of(process_.pid(), "VmRSS");
        const auto queued = Clock::now();
        process_.ask({"queue", directory_, std::to_string(waiters_)});
        const auto quiet_since = await_idle(queued);
        found_.lease_coming = least_lease();
        found_.kib_peak = (kib_of(process_.pid(), "VmHWM") - before) / static_cast<double>(waiters_);
        if (!quiet_since) return;
        found_.seconds_to_queue = seconds_between(queued, *quiet_since);
        found_.kib_now = (kib_of(process_.pid(), "VmRSS") - before) / static_cast<double>(waiters_);
        const auto released = Clock::now();
        holder_.release();
        const auto last_grant = await_grants(released);
        found_.lease_draining = least_lease();
        if (last_grant) found_.seconds_to_drain = seconds_between(released, *last_grant);
    }

    /// Requests, and what the server keeps. The process must be behind the gate.
    void count() {
        place_.gate().limit_trace(2'000'000);
        place_.reset_trace();
        const auto queued = Clock::now();
        process_.ask({"queue", directory_, std::to_string(waiters_)});
        if (const auto queueing = await_quiet(queued)) {
            found_.nodes = holder_.children(directory_) - 1;
            found_.watches = watches_at(place_.server(), directory_);
            if (has_other_lock_) reconnect();
            place_.reset_trace();
            const auto released = Clock::now();
            holder_.release();
            const auto draining = await_grants(released) ? await_quiet(Clock::now()) : std::nullopt;
            if (draining) found_.requests = (queueing->requests + draining->requests) / static_cast<double>(waiters_);
        }
        place_.gate().limit_trace(200'000);
        place_.reset_trace();
    }

private:
    void reconnect() {
        least_lease();
        place_.reset_trace();
        place_.gate().refuse();
        place_.gate().reset_all();
        std::this_thread::sleep_for(kTimeout / 8);
        place_.pass();
        const auto traffic = await_quiet(Clock::now());
        found_.lease_reconnecting = least_lease();
        if (traffic) found_.reconnect_requests = traffic->requests;
    }

    /// As await_idle(), and until all requests at the gate were answered.
    std::optional<Traffic> await_quiet(Clock::time_point begin) {
        while (await_idle(begin)) {
            const Traffic traffic(place_.trace(), directory_);
            if (traffic.requests > 0 && traffic.open == 0) return traffic;
        }
        return std::nullopt;
    }

    /// Until the process and the server have had nothing to do for a while; since when.
    std::optional<Clock::time_point> await_idle(Clock::time_point begin) {
        constexpr std::int64_t kPackets = 4;  // of pings, heartbeats and the question itself
        constexpr int kCalm = 3;  // looks: on a busy machine, a process that does nothing may only be waiting
        auto busy = Clock::now();
        std::int64_t packets = 0;
        std::int64_t time = 0;
        int calm = 0;
        while (Clock::now() < begin + limit_) {
            const auto now = Clock::now();
            const std::int64_t packets_before = std::exchange(packets, packets_at(place_.server()));
            const std::int64_t time_before = std::exchange(time, processor_milliseconds(process_.pid()));
            if (packets - packets_before > kPackets || time - time_before > kLook.count() / 3) busy = now;
            calm = wants_processor(process_.pid()) || wants_processor(place_.server().pid()) ? 0 : calm + 1;
            if (now > busy + kQuiet && calm >= kCalm && status().at(2) >= waiters_) return busy;
            std::this_thread::sleep_for(kLook);
        }
        return std::nullopt;
    }

    /// Until all waiters had the lock; when the last one got it.
    std::optional<Clock::time_point> await_grants(Clock::time_point begin) {
        while (Clock::now() < begin + limit_) {
            const auto now = status();
            if (now.at(0) >= waiters_) {
                return Clock::time_point(std::chrono::nanoseconds(static_cast<std::int64_t>(now.at(1))));
            }
            std::this_thread::sleep_for(milliseconds(20));
        }
        return std::nullopt;
    }

    std::vector<double> status() {
        const auto status = process_.ask({"status"});
        if (has_other_lock_) {
            const double lease = status.at(3) / static_cast<double>(kTimeout.count());
            least_lease_ = std::min(least_lease_.value_or(lease), lease);
            found_.other_held = std::min(found_.other_held.value_or(1), status.at(4));
        }
        return status;
    }
    /// Since the last call.
    std::optional<double> least_lease() {
        status();
        return std::exchange(least_lease_, std::nullopt);
    }

    Place& place_;
    Process& process_;
    const std::string directory_;
    const int waiters_;
    const std::chrono::seconds limit_;  // of queueing, of draining
    const bool has_other_lock_;
    CrowdFindings& found_;
    FloorLock holder_;
    std::optional<double> least_lease_;
};

}  // namespace

CrowdFindings crowd_of_ours(Place& place, const std::string& top, int waiters, std::chrono::seconds limit,
                            bool counted) {
    CrowdFindings found;
    FloorClient(place.hosts(0)).make_path(top);
    const auto run = [&](bool gated, const std::string& directory, auto what) {
        Process process({"/proc/self/exe", "--crowd-process"});
        process.ask({"open", place.hosts(0, gated), directory + "_other", std::to_string(kTimeout.count())});
        what(CrowdRun(place, process, directory, waiters, limit, true, found));
    };
    run(false, top + "/z1", [](CrowdRun&& crowd) { crowd.measure(); });
    if (counted && found.seconds_to_drain) run(true, top + "/z2", [](CrowdRun&& crowd) { crowd.count(); });
    return found;
}

CrowdFindings crowd_of_curator(Place& place, const std::string& top, int waiters, std::chrono::seconds limit) {
    CrowdFindings found;
    {
        Curator process(1, place.all_hosts());
        CrowdRun(place, process, top + "/c1", waiters, limit, false, found).measure();
    }
    Curator process(1, place.all_hosts(true));
    CrowdRun(place, process, top + "/c2", waiters, limit, false, found).count();
    return found;
}

FloorCrowdFindings crowd_of_floor(Place& place, const std::string& directory, int waiters) {
    const std::string data(100, 'x');
    FloorCrowdFindings found;
    {
        FloorCrowd crowd(place.hosts(0), directory, data);
        crowd.make_path(directory);
        found.seconds_to_drain = microseconds_of([&] { crowd.drain(waiters); }) / 1e6;
    }
    FloorCrowd crowd(place.hosts(0, true), directory, data);
    const int counted = std::min(waiters, 500);
    place.reset_trace();
    crowd.drain(counted);
    found.requests = Traffic(place.trace(), directory).requests / static_cast<double>(counted);
    return found;
}

}  // namespace zkrecipes::bench
