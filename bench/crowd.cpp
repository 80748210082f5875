// Many waiters of one session on one path.
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "bench/cases.hpp"
#include "bench/crowd_process.hpp"
#include "bench/floor.hpp"
#include "bench/places.hpp"
#include "bench/processes.hpp"
#include "bench/table.hpp"

namespace zkrecipes::bench {
namespace {

using std::chrono::milliseconds;
using testenv::Opcode;
using testenv::Record;

constexpr milliseconds kTimeout{10'000};    // of the session
constexpr std::chrono::seconds kLimit{15};  // of queueing, of draining
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

std::int64_t processor_milliseconds(int pid) {
    clockid_t clock{};
    timespec time{};
    clock_getcpuclockid(pid, &clock);
    clock_gettime(clock, &time);
    return std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

/// All packets that the server has received and sent.
std::int64_t packets_at(const testenv::ZkServer& server) {
    std::istringstream lines(server.four_letter("mntr"));
    std::int64_t packets = 0;
    std::string name;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::int64_t number = 0;
        if (words >> name >> number && (name == "zk_packets_received" || name == "zk_packets_sent")) packets += number;
    }
    return packets;
}

/// What a crowd showed. What it did not get to is missing.
struct Findings {
    // Directly at the server.
    std::optional<double> seconds_to_queue;
    std::optional<double> kib_now;
    std::optional<double> kib_peak;
    std::optional<double> lease_coming;
    std::optional<double> seconds_to_drain;
    std::optional<double> lease_draining;
    // Through a gate.
    std::optional<double> requests;
    std::optional<double> nodes;
    std::optional<double> watches;
    std::optional<double> reconnect_requests;
    std::optional<double> lease_reconnecting;
    // Both.
    std::optional<double> other_held;
};

/// A crowd in a process that takes the commands of CuratorBench.java.
class CrowdRun {
public:
    CrowdRun(Place& place, Process& process, std::string directory, int waiters, bool has_other_lock, Findings& found)
        : place_(place),
          process_(process),
          directory_(std::move(directory)),
          waiters_(waiters),
          has_other_lock_(has_other_lock),
          found_(found),
          holder_(place_.hosts(0), directory_) {
        holder_.make_path(directory_);
        holder_.acquire_free();
    }

    /// Times and memory. Without a gate, which would hold back what the server sends.
    void measure() {
        least_lease();
        const int before = kib("VmRSS");
        const auto queued = Clock::now();
        process_.ask({"queue", directory_, std::to_string(waiters_)});
        const auto quiet_since = await_idle(queued);
        found_.lease_coming = least_lease();
        found_.kib_peak = (kib("VmHWM") - before) / static_cast<double>(waiters_);
        if (!quiet_since) return;
        found_.seconds_to_queue = seconds_between(queued, *quiet_since);
        found_.kib_now = (kib("VmRSS") - before) / static_cast<double>(waiters_);
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
        while (Clock::now() < begin + kLimit) {
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
        while (Clock::now() < begin + kLimit) {
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

    /// A line of /proc/PID/status: VmRSS, VmHWM.
    int kib(const std::string& what) const {
        std::ifstream file("/proc/" + std::to_string(process_.pid()) + "/status");
        for (std::string line; std::getline(file, line);) {
            if (line.starts_with(what + ":")) return std::stoi(line.substr(what.size() + 1));
        }
        return 0;
    }

    Place& place_;
    Process& process_;
    const std::string directory_;
    const int waiters_;
    const bool has_other_lock_;
    Findings& found_;
    FloorLock holder_;
    std::optional<double> least_lease_;
};

Findings run_ours(Place& place, const std::string& top, int waiters) {
    Findings found;
    FloorClient(place.hosts(0)).make_path(top);
    const auto run = [&](bool gated, const std::string& directory, auto what) {
        Process process({"/proc/self/exe", "--crowd-process"});
        process.ask({"open", place.hosts(0, gated), directory + "_other", std::to_string(kTimeout.count())});
        what(CrowdRun(place, process, directory, waiters, true, found));
    };
    run(false, top + "/z1", [](CrowdRun&& crowd) { crowd.measure(); });
    if (found.seconds_to_drain) run(true, top + "/z2", [](CrowdRun&& crowd) { crowd.count(); });
    return found;
}

Findings run_curator(Place& place, const std::string& top, int waiters) {
    Findings found;
    {
        Curator process(1, place.all_hosts());
        CrowdRun(place, process, top + "/c1", waiters, false, found).measure();
    }
    Curator process(1, place.all_hosts(true));
    CrowdRun(place, process, top + "/c2", waiters, false, found).count();
    return found;
}

struct FloorFindings {
    double seconds_to_drain = 0;
    double requests = 0;
};

FloorFindings run_floor(Place& place, const std::string& directory, int waiters) {
    const std::string data(100, 'x');
    FloorFindings found;
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

void crowd(benchmark::State& state, int waiters, bool with_curator) {
    Place& place = Place::one_server();
    const std::string top = "/bench/crowd_of_" + std::to_string(waiters);
    FloorFindings floor;
    Findings ours;
    Findings curator;
    for (auto _ : state) {
        const auto begin = Clock::now();
        floor = run_floor(place, top + "/f", waiters);
        ours = run_ours(place, top, waiters);
        if (with_curator && Curator::why_not().empty()) curator = run_curator(place, top, waiters);
        state.SetIterationTime(seconds_between(begin, Clock::now()));
    }
    const auto values = [](const std::optional<double>& value) {
        return value ? std::vector<double>{*value} : std::vector<double>{};
    };
    const auto add_row = [&](const std::string& what, const std::string& unit, std::optional<double> least,
                             std::optional<double> Findings::*member) {
        add(state, {what, unit, values(least), values(ours.*member), values(curator.*member), {}});
    };
    const auto add_time = [&](const std::string& what, std::optional<double> least, bool begun,
                              std::optional<double> Findings::*member) {
        const std::string too_long = begun && !(ours.*member) ? "> " + std::to_string(kLimit.count()) : "";
        add(state, {what, "s", values(least), values(ours.*member), values(curator.*member), too_long});
    };
    add_time("to queue", {}, true, &Findings::seconds_to_queue);
    add_time("to drain", floor.seconds_to_drain, ours.seconds_to_queue.has_value(), &Findings::seconds_to_drain);
    add_row("requests to queue and drain", "a hold", floor.requests, &Findings::requests);
    add_row("resident, once queued", "KiB a waiter", {}, &Findings::kib_now);
    add_row("resident, at most while queueing", "KiB a waiter", {}, &Findings::kib_peak);
    add_row("nodes at the server", "while queued", 2, &Findings::nodes);
    add_row("watches at the server", "while queued", {}, &Findings::watches);
    add_row("requests after a reconnect", "in all", {}, &Findings::reconnect_requests);
    add_row("least lease of another lock, queueing", "timeouts", {}, &Findings::lease_coming);
    add_row("least lease of another lock, reconnecting", "timeouts", {}, &Findings::lease_reconnecting);
    add_row("least lease of another lock, draining", "timeouts", {}, &Findings::lease_draining);
    add_row("the other lock is still held", "1: yes", {}, &Findings::other_held);
}

}  // namespace

void register_crowds() {
    for (const int waiters : {500, 5'000, 10'000}) {
        benchmark::RegisterBenchmark(("crowd/" + std::to_string(waiters) + "_waiters").c_str(),
                                     [waiters](benchmark::State& state) { crowd(state, waiters, waiters <= 500); })
            ->UseManualTime()
            ->Iterations(1);
    }
}

}  // namespace zkrecipes::bench
