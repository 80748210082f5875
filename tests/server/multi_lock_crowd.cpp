#include "server/multi_lock_crowd.hpp"

#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/session.hpp>

#include <zkrecipes/testenv/raw_client.hpp>

namespace zkrecipes::test {
namespace {

using As = MultiLock::As;
using Clock = std::chrono::steady_clock;

/// Who is inside, by what the holders believe.
class Judge {
public:
    explicit Judge(std::size_t paths) : inside_(paths) {}

    void enter(std::size_t path, bool shared) {
        const std::lock_guard lock(mutex_);
        Inside& now = inside_[path];
        overlaps_ += now.alone > 0 || (!shared && now.shared > 0);
        ++(shared ? now.shared : now.alone);
    }
    void leave(std::size_t path, bool shared) {
        const std::lock_guard lock(mutex_);
        --(shared ? inside_[path].shared : inside_[path].alone);
    }
    std::size_t overlaps() const { return overlaps_; }

private:
    struct Inside {
        int alone = 0, shared = 0;
    };
    std::mutex mutex_;
    std::vector<Inside> inside_;
    std::size_t overlaps_ = 0;
};

class Crowd {
public:
    Crowd(std::string connect_string, std::string root, const CrowdOptions& options)
        : hosts_(std::move(connect_string)), root_(std::move(root)), options_(options), judge_(options.paths) {}

    CrowdReport run() {
        const auto start = Clock::now();
        {
            std::vector<std::jthread> clients;
            for (std::size_t i = 0; i < options_.clients; ++i) clients.emplace_back([this, i] { client(i); });
        }
        CrowdReport report;
        report.acquisitions = done_;
        report.of_sets = sets_;
        report.overlaps = judge_.overlaps();
        report.unserved = unserved_;
        report.slowest = std::chrono::milliseconds(slowest_ms_);
        report.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
        testenv::RawClient observer(hosts_);
        for (std::size_t i = 0; i < options_.paths; ++i) {
            report.left_nodes += observer.children(path(i)).value_or(std::vector<std::string>()).size();
        }
        return report;
    }

private:
    struct Wish {
        std::size_t path;
        As as;
    };

    std::string path(std::size_t i) const { return root_ + "/" + std::to_string(i); }
    bool is_mutex(std::size_t i) const { return i < options_.paths / 2; }

    void client(std::size_t number) {
        SessionOptions session_options;
        session_options.hosts = hosts_;
        session_options.logger =
            std::make_shared<spdlog::logger>("crowd", std::make_shared<spdlog::sinks::null_sink_mt>());
        Session session(session_options);
        std::mt19937_64 dice(options_.seed * 1000 + number);
        while (unserved_ == 0 && started_.fetch_add(1) < options_.acquisitions) {
            const bool single = dice() % 3 == 0;
            auto wishes = some(dice, single ? 1 : 2 + dice() % 3);
            if (number % 2 == 1) std::reverse(wishes.begin(), wishes.end());
            try {
                once(session, wishes, single);
            } catch (const Error&) {
                ++unserved_;
            }
        }
        session.close();
    }

    std::vector<Wish> some(std::mt19937_64& dice, std::size_t count) const {
        std::vector<Wish> wishes;
        while (wishes.size() < count) {
            const std::size_t i = dice() % options_.paths;
            const bool twice = std::any_of(wishes.begin(), wishes.end(), [i](const Wish& w) { return w.path == i; });
            if (twice) continue;
            wishes.push_back({i, is_mutex(i) ? As::mutex : dice() % 2 == 0 ? As::alone : As::shared});
        }
        return wishes;
    }

    Grant acquire(Session& session, const std::vector<Wish>& wishes, bool single) const {
        const Deadline deadline(options_.patience);
        const Wish& first = wishes.front();
        if (single && first.as == As::mutex) return ExclusiveMutex(session, path(first.path)).acquire_before(deadline);
        if (single) {
            ReadWriteLock lock(session, path(first.path));
            return first.as == As::alone ? lock.acquire_before(deadline) : lock.acquire_shared_before(deadline);
        }
        std::vector<MultiLock::Member> members;
        for (const Wish& wish : wishes) members.push_back({path(wish.path), wish.as});
        return MultiLock(session, std::move(members)).acquire_before(deadline);
    }

    void once(Session& session, const std::vector<Wish>& wishes, bool single) {
        const auto start = Clock::now();
        Grant grant = acquire(session, wishes, single);
        const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
        if (!grant.held()) {
            ++unserved_;
            return;
        }
        for (auto slowest = slowest_ms_.load();
             waited > slowest && !slowest_ms_.compare_exchange_weak(slowest, waited);) {
        }
        for (const Wish& wish : wishes) judge_.enter(wish.path, wish.as == As::shared);
        std::this_thread::yield();
        for (const Wish& wish : wishes) judge_.leave(wish.path, wish.as == As::shared);
        ++done_;
        if (!single) ++sets_;
        grant.release();
    }

    const std::string hosts_, root_;
    const CrowdOptions options_;
    Judge judge_;
    std::atomic<std::size_t> started_{0}, done_{0}, sets_{0}, unserved_{0};
    std::atomic<std::int64_t> slowest_ms_{0};
};

}  // namespace

CrowdReport run_crowd(const std::string& connect_string, const std::string& root, const CrowdOptions& options) {
    return Crowd(connect_string, root, options).run();
}

}  // namespace zkrecipes::test
