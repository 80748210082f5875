#include "server/multi_lock_crowd.hpp"

#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/session.hpp>

#include <zkrecipes/testenv/raw_client.hpp>

#include "support/await.hpp"

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

/// A client of this library: a single path by its own recipe, several by a MultiLock.
class OurCrowdClient final : public CrowdClient {
public:
    OurCrowdClient(const std::string& hosts, std::chrono::milliseconds give_way_after,
                   std::atomic<std::size_t>& gave_way)
        : session_(options(hosts)), give_way_after_(give_way_after), gave_way_(gave_way) {}

    bool acquire(const std::vector<MultiLock::Member>& members, std::chrono::milliseconds patience) override {
        const Deadline deadline(patience);
        const auto& [path, as] = members.front();
        if (members.size() > 1) {
            acquire_set(members, patience);
        } else if (as == As::mutex) {
            grant_ = ExclusiveMutex(session_, path).try_acquire_until(deadline);
        } else {
            ReadWriteLock lock(session_, path);
            grant_ = as == As::exclusive ? lock.try_acquire_until(deadline) : lock.try_acquire_shared_until(deadline);
        }
        return grant_.held();
    }
    void release() override { grant_.release(); }

private:
    static SessionOptions options(const std::string& hosts) {
        SessionOptions options;
        options.hosts = hosts;
        options.logger = std::make_shared<spdlog::logger>("crowd", std::make_shared<spdlog::sinks::null_sink_mt>());
        return options;
    }

    void acquire_set(const std::vector<MultiLock::Member>& members, std::chrono::milliseconds patience) {
        MultiLock lock(session_, members);
        const auto limit = Clock::now() + patience;
        const auto wait = give_way_after_ > give_way_after_.zero() ? give_way_after_ : patience;
        while (!(grant_ = lock.try_acquire_until(wait)) && Clock::now() < limit) ++gave_way_;
    }

    Session session_;
    Grant grant_;
    const std::chrono::milliseconds give_way_after_;
    std::atomic<std::size_t>& gave_way_;
};

class Crowd {
public:
    Crowd(std::string connect_string, std::string root, CrowdOptions options)
        : hosts_(std::move(connect_string)),
          root_(std::move(root)),
          options_(std::move(options)),
          judge_(options_.paths) {}

    CrowdReport run() {
        const auto start = Clock::now();
        {
            std::vector<std::jthread> clients;
            for (std::size_t i = 0; i < options_.clients; ++i) clients.emplace_back([this, i] { client(i); });
        }
        CrowdReport report;
        report.acquisitions = done_;
        report.of_sets = sets_;
        report.of_guests = guests_;
        report.overlaps = judge_.overlaps();
        report.gave_way = gave_way_;
        report.unserved = unserved_;
        report.slowest = std::chrono::milliseconds(slowest_ms_);
        report.slowest_of_guests = std::chrono::milliseconds(slowest_guest_ms_);
        report.took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
        testenv::RawClient observer(hosts_);
        static_cast<void>(await(
            [&] {  // a session that could not be closed in time ends a little later
                report.left_nodes = 0;
                for (std::size_t i = 0; i < options_.paths; ++i) {
                    report.left_nodes += observer.children(path(i)).value_or(std::vector<std::string>()).size();
                }
                return report.left_nodes == 0;
            },
            std::chrono::seconds(5)));
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
        const bool guest = number < options_.guests.size();
        const std::unique_ptr<CrowdClient> who =
            guest ? std::move(options_.guests[number])
                  : std::make_unique<OurCrowdClient>(hosts_, options_.give_way_after, gave_way_);
        std::mt19937_64 dice(options_.seed * 1000 + number);
        while (unserved_ == 0 && started_.fetch_add(1) < options_.acquisitions) {
            const bool single = dice() % 3 == 0;
            auto wishes = some(dice, single ? 1 : 2 + dice() % 3);
            if (number % 2 == 1) std::reverse(wishes.begin(), wishes.end());
            try {
                once(*who, wishes, guest);
            } catch (const std::exception& error) {
                std::fprintf(stderr, "one of the crowd failed: %s\n", error.what());
                ++unserved_;
            }
        }
    }

    std::vector<Wish> some(std::mt19937_64& dice, std::size_t count) const {
        std::vector<Wish> wishes;
        while (wishes.size() < count) {
            const std::size_t i = dice() % options_.paths;
            const bool twice = std::any_of(wishes.begin(), wishes.end(), [i](const Wish& w) { return w.path == i; });
            if (twice) continue;
            wishes.push_back({i, is_mutex(i) ? As::mutex : dice() % 2 == 0 ? As::exclusive : As::shared});
        }
        return wishes;
    }

    void once(CrowdClient& who, const std::vector<Wish>& wishes, bool guest) {
        std::vector<MultiLock::Member> members;
        for (const Wish& wish : wishes) members.push_back({path(wish.path), wish.as});
        const auto start = Clock::now();
        if (!who.acquire(members, options_.patience)) {
            ++unserved_;
            return;
        }
        const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
        raise(guest ? slowest_guest_ms_ : slowest_ms_, waited);
        for (const Wish& wish : wishes) judge_.enter(wish.path, wish.as == As::shared);
        std::this_thread::yield();
        for (const Wish& wish : wishes) judge_.leave(wish.path, wish.as == As::shared);
        ++done_;
        if (wishes.size() > 1) ++sets_;
        if (guest) ++guests_;
        who.release();
    }

    static void raise(std::atomic<std::int64_t>& slowest, std::int64_t waited) {
        for (auto seen = slowest.load(); waited > seen && !slowest.compare_exchange_weak(seen, waited);) {
        }
    }

    const std::string hosts_, root_;
    CrowdOptions options_;
    Judge judge_;
    std::atomic<std::size_t> started_{0}, done_{0}, sets_{0}, guests_{0}, gave_way_{0}, unserved_{0};
    std::atomic<std::int64_t> slowest_ms_{0}, slowest_guest_ms_{0};
};

}  // namespace

std::string CrowdReport::text() const {
    char line[300];
    std::snprintf(
        line, sizeof line,
        "acquisitions %zu (%zu of sets, %zu by guests), overlaps %zu, unserved %zu, nodes left %zu, sets that "
        "gave way %zu, slowest wait %lld ms, of guests %lld ms, %.1f s",
        acquisitions, of_sets, of_guests, overlaps, unserved, left_nodes, gave_way,
        static_cast<long long>(slowest.count()), static_cast<long long>(slowest_of_guests.count()),
        static_cast<double>(took.count()) / 1000);
    return line;
}

CrowdReport run_crowd(const std::string& connect_string, const std::string& root, CrowdOptions options) {
    return Crowd(connect_string, root, std::move(options)).run();
}

}  // namespace zkrecipes::test
