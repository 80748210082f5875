#include "zklock/look/watch_command.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>
#include <zkrecipes/inspect.hpp>

#include "zklock/commands/look_commands.hpp"
#include "zklock/look/live.hpp"
#include "zklock/once/run_status.hpp"
#include "zklock/report/console.hpp"
#include "zklock/report/describe.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/print.hpp"
#include "zklock/system/boot_clock.hpp"

namespace zkrecipes::zklock {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPause(500);                 // between two looks at the names
constexpr std::chrono::seconds kWholeLookEvery(5);  // for changes that the names do not show, such as labels
constexpr int kShareOfTime = 10;                    // a long queue is read for at most a tenth of the time

/// The names of the nodes, by which a change is noticed: one request, or three for a semaphore.
std::vector<std::string> names_of(Session& session, const LockView& lock) {
    std::vector<std::string> directories = {lock.path};
    if (lock.semaphore) directories.insert(directories.end(), {lock.path + "/locks", lock.path + "/leases"});
    std::vector<std::string> result;
    for (const std::string& directory : directories) {
        const LockNames names = list_lock(session, directory, Live::answer_by());
        if (names.exists) result.push_back(directory);
        for (const Participant& one : names.participants) result.push_back(one.path);
        result.insert(result.end(), names.others.begin(), names.others.end());
    }
    std::sort(result.begin(), result.end());
    return result;
}

bool same(const Participant& a, const Participant& b) {
    return std::tie(a.path, a.token, a.holder, a.mode, a.raw) == std::tie(b.path, b.token, b.holder, b.mode, b.raw);
}

bool same(const LockView& a, const LockView& b) {
    const auto equal = [](const Participant& one, const Participant& other) { return same(one, other); };
    return a.exists == b.exists && a.semaphore == b.semaphore && a.leases == b.leases &&
           std::equal(a.participants.begin(), a.participants.end(), b.participants.begin(), b.participants.end(),
                      equal);
}

bool same(const LockStatus& a, const LockStatus& b) {
    return same(a.lock, b.lock) && a.run == b.run && a.unreadable == b.unreadable &&
           a.other_node.empty() == b.other_node.empty();
}

class Watcher {
public:
    Watcher(const Options& options, Console& console, Live& live)
        : options_(options), console_(console), live_(live), setbacks_(options, console) {}

    void run() {
        look();  // an error of the first look ends zklock, as without --watch
        while (!live_.stopped()) {
            milliseconds pause = kPause;
            try {
                look_if_changed();
                setbacks_.succeeded();
            } catch (const Error& error) {
                if (live_.stopped()) return;
                pause = setbacks_.failed(error);
            }
            live_.pause(
                std::max<Nanoseconds>(pause, std::min<Nanoseconds>(last_look_took_ * kShareOfTime, kWholeLookEvery)));
        }
    }

private:
    void look_if_changed() {
        // The names first: a change after this is noticed next time.
        std::vector<std::string> names = names_of(live_.session(), shown_->lock);
        if (names == names_ && BootClock::now() - looked_at_ < kWholeLookEvery) return;
        look();
        names_ = std::move(names);
    }

    void look() {
        looked_at_ = BootClock::now();
        Answers answers = live_.answers(console_);
        LockStatus status = read_lock_status(answers, options_.lock);
        last_look_took_ = BootClock::now() - looked_at_;
        if (shown_ && same(*shown_, status)) return;
        shown_ = std::move(status);
        show();
    }

    void show() const {
        if (options_.json) {
            boost::json::object object = {{"v", 1}, {"ts", timestamp_now()}};
            merge(object, to_json(shown_->lock, std::chrono::system_clock::now()));
            object["once"] = run_json(*shown_);
            return print(dump(object) + "\n");
        }
        print(timestamp_now() + " " + picture_of(*shown_, options_));
    }

    const Options& options_;
    Console& console_;
    Live& live_;
    Setbacks setbacks_;
    std::optional<LockStatus> shown_;
    std::vector<std::string> names_;
    Instant looked_at_{};
    Nanoseconds last_look_took_{0};
};

}  // namespace

int watch_command(const Options& options, Console& console) {
    run_live(options, console, [&](Live& live) { Watcher(options, console, live).run(); });
    return kOk;
}

}  // namespace zkrecipes::zklock
