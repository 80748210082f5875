// Many waiters of one session on one path.
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <thread>

#include "bench/cases.hpp"
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

/// A line of /proc/PID/status: VmRSS, VmHWM.
int kib(int pid, const std::string& what) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(what + ":")) return std::stoi(line.substr(what.size() + 1));
    }
    return 0;
}

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

/// What a crowd showed. What it did not get to is missing.
struct Findings {
    std::optional<double> seconds_to_queue;
    std::optional<double> kib_now;
    std::optional<double> kib_peak;
    std::optional<double> nodes;
    std::optional<double> watches;
    std::optional<double> lease_coming;
    std::optional<double> reconnect_requests;
    std::optional<double> lease_reconnecting;
    std::optional<double> seconds_to_drain;
    std::optional<double> requests;
    std::optional<double> lease_draining;
    std::optional<double> other_held;
};

/// A crowd in a process that takes the commands of CuratorBench.java.
class CrowdRun {
public:
    CrowdRun(Place& place, Process& process, std::string directory, int waiters)
        : place_(place), process_(process), directory_(std::move(directory)), waiters_(waiters) {}

    Findings run(bool with_other_lock) {
        FloorLock holder(place_.hosts(0), directory_);
        holder.make_path(directory_);
        holder.acquire_free();
        with_other_lock_ = with_other_lock;
        place_.gate().limit_trace(2'000'000);
        queue(holder);
        if (found_.seconds_to_queue && with_other_lock) reconnect();
        if (found_.seconds_to_queue) drain(holder);
        place_.gate().limit_trace(200'000);
        place_.reset_trace();
        return found_;
    }

private:
    // Nothing was sent for a while and everything was answered.
    std::optional<Traffic> await_quiet(Clock::time_point begin) {
        for (std::uint64_t before = 0; Clock::now() < begin + kLimit;) {
            std::this_thread::sleep_for(kQuiet / 3);
            const std::uint64_t now = place_.gate().counts().total();
            if (std::exchange(before, now) + 2 < now) continue;  // spares the trace
            const Traffic traffic(place_.trace(), directory_);
            if (traffic.requests > 0 && traffic.open == 0 && Clock::now() > traffic.last + kQuiet) return traffic;
        }
        return std::nullopt;
    }

    std::optional<double> least_lease() {
        const auto status = process_.ask({"status"});
        if (!with_other_lock_) return std::nullopt;
        found_.other_held = status.at(4);
        return status.at(3) / static_cast<double>(kTimeout.count());
    }

    void queue(FloorLock& observer) {
        least_lease();
        const int before = kib(process_.pid(), "VmRSS");
        place_.reset_trace();
        const auto begin = Clock::now();
        process_.ask({"queue", directory_, std::to_string(waiters_)});
        const auto traffic = await_quiet(begin);
        found_.lease_coming = least_lease();
        if (!traffic) return;
        found_.kib_now = (kib(process_.pid(), "VmRSS") - before) / static_cast<double>(waiters_);
        found_.kib_peak = (kib(process_.pid(), "VmHWM") - before) / static_cast<double>(waiters_);
        found_.seconds_to_queue = seconds_between(begin, traffic->last);
        found_.requests = traffic->requests;
        found_.nodes = observer.children(directory_) - 1;
        found_.watches = watches_at(place_.server(), directory_);
    }

    void reconnect() {
        place_.reset_trace();
        place_.gate().refuse();
        place_.gate().reset_all();
        std::this_thread::sleep_for(kTimeout / 8);
        place_.pass();
        const auto traffic = await_quiet(Clock::now());
        found_.lease_reconnecting = least_lease();
        if (traffic) found_.reconnect_requests = traffic->requests;
    }

    void drain(FloorLock& holder) {
        place_.reset_trace();
        const auto begin = Clock::now();
        holder.release();
        double last = 0;
        while (Clock::now() < begin + kLimit) {
            const auto status = process_.ask({"status"});
            last = status.at(1) / 1e9;
            if (with_other_lock_) {
                const double lease = status.at(3) / static_cast<double>(kTimeout.count());
                found_.lease_draining = std::min(found_.lease_draining.value_or(lease), lease);
                found_.other_held = status.at(4);
            }
            if (status.at(0) >= waiters_) break;
            std::this_thread::sleep_for(milliseconds(20));
        }
        if (process_.ask({"status"}).at(0) < waiters_) {
            found_.requests.reset();
            return;
        }
        found_.seconds_to_drain = last - std::chrono::duration<double>(begin.time_since_epoch()).count();
        if (const auto traffic = await_quiet(Clock::now())) {
            found_.requests = (*found_.requests + traffic->requests) / waiters_;
        } else {
            found_.requests.reset();
        }
    }

    Place& place_;
    Process& process_;
    const std::string directory_;
    const int waiters_;
    bool with_other_lock_ = false;
    Findings found_;
};

struct FloorFindings {
    double seconds_to_drain = 0;
    double requests = 0;
};

FloorFindings run_floor(Place& place, const std::string& directory, int waiters) {
    FloorCrowd crowd(place.hosts(0, true), directory, std::string(100, 'x'));
    crowd.make_path(directory);
    place.gate().limit_trace(2'000'000);
    place.reset_trace();
    FloorFindings found;
    found.seconds_to_drain = microseconds_of([&] { crowd.drain(waiters); }) / 1e6;
    found.requests = Traffic(place.trace(), directory).requests / static_cast<double>(waiters);
    place.gate().limit_trace(200'000);
    place.reset_trace();
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
        {
            Process process({"/proc/self/exe", "--crowd-process"});
            FloorClient(place.hosts(0)).make_path(top);
            process.ask({"open", place.hosts(0, true), top + "/other", std::to_string(kTimeout.count())});
            ours = CrowdRun(place, process, top + "/z", waiters).run(true);
        }
        if (with_curator && Curator::why_not().empty()) {
            Curator process(1, place.all_hosts(true));
            curator = CrowdRun(place, process, top + "/c", waiters).run(false);
        }
        state.SetIterationTime(seconds_between(begin, Clock::now()));
    }
    const auto values = [](const std::optional<double>& value) {
        return value ? std::vector<double>{*value} : std::vector<double>{};
    };
    const auto add_row = [&](const std::string& what, const std::string& unit, std::optional<double> least,
                             std::optional<double> Findings::*member) {
        add(state, {what, unit, values(least), values(ours.*member), values(curator.*member), {}});
    };
    const auto add_time = [&](const std::string& what, std::optional<double> least,
                              std::optional<double> Findings::*member) {
        const std::string too_long = ours.*member ? "" : "> " + std::to_string(kLimit.count());
        add(state, {what, "s", values(least), values(ours.*member), values(curator.*member), too_long});
    };
    add_time("to queue", {}, &Findings::seconds_to_queue);
    add_time("to drain", floor.seconds_to_drain, &Findings::seconds_to_drain);
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
