// The C++ counterpart of CuratorPeer.java and kazoo_peer.py, within the test itself.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/semaphore_mutex.hpp>
#include <zkrecipes/session.hpp>

#include "interop/peer.hpp"
#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {
namespace {

/// What every kind of lock can do.
struct Lock {
    std::function<bool(Deadline)> acquire;
    std::function<void()> release;
    std::function<std::vector<Participant>()> participants;
};

Lock election_of_kind(const std::string& kind, Session& session, const std::string& path, const LockOptions& locks) {
    ElectionOptions options;
    options.id = locks.id;
    options.layout = kind == "latch"      ? ElectionLayout::latch
                     : kind == "selector" ? ElectionLayout::selector
                                          : ElectionLayout::kazoo;
    const auto election = std::make_shared<LeaderElection>(session, path, options);
    const auto leadership = std::make_shared<Grant>();
    return {[=](Deadline d) { return static_cast<bool>(*leadership = election->try_campaign_until(d)); },
            [=] { leadership->release(); },
            [=] {
                auto candidates = election->candidates();
                for (auto& each : candidates) each.raw = each.id + (each.holder ? " leads" : "");
                return candidates;
            }};
}

/// The two sides of one lock belong to one object, so that who holds one side can ask for the other.
using ReadWriteLocks = std::map<std::string, std::shared_ptr<ReadWriteLock>>;

Lock lock_of_kind(const std::string& kind, Session& session, const std::string& path, const LockOptions& options,
                  ReadWriteLocks& read_write_locks) {
    if (kind == "mutex") {
        const auto lock = std::make_shared<ExclusiveMutex>(session, path, options);
        return {[=](Deadline d) { return lock->try_lock_until(d); }, [=] { lock->unlock(); },
                [=] { return lock->participants(); }};
    }
    if (kind == "semaphore_mutex") {
        const auto lock = std::make_shared<SemaphoreMutex>(session, path, options);
        return {[=](Deadline d) { return lock->try_lock_until(d); }, [=] { lock->unlock(); },
                [=] { return lock->participants(); }};
    }
    if (kind == "semaphore2") {  // one lease of two
        const auto semaphore = std::make_shared<Semaphore>(session, path, 2, options);
        const auto held = std::make_shared<std::vector<Grant>>();
        const auto acquire = [=](Deadline d) {
            Grant grant = semaphore->try_acquire_until(d);
            if (!grant) return false;
            held->push_back(std::move(grant));
            return true;
        };
        return {acquire, [=] { held->pop_back(); }, [=] { return semaphore->participants(); }};
    }
    if (kind == "latch" || kind == "selector" || kind == "election") {
        return election_of_kind(kind, session, path, options);
    }
    auto& known = read_write_locks[path];
    if (!known) known = std::make_shared<ReadWriteLock>(session, path, options);
    const auto lock = known;
    const auto participants = [=] { return lock->participants(); };
    if (kind == "write") {
        return {[=](Deadline d) { return lock->try_lock_until(d); }, [=] { lock->unlock(); }, participants};
    }
    if (kind == "read") {
        return {[=](Deadline d) { return lock->try_lock_shared_until(d); }, [=] { lock->unlock_shared(); },
                participants};
    }
    throw std::invalid_argument("unknown kind of lock " + kind);
}

/// The number in a file that nothing protects.
class Counter {
public:
    explicit Counter(const std::string& path) : file_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
        if (file_ < 0) throw std::system_error(errno, std::generic_category(), path);
    }
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;
    ~Counter() { close(file_); }

    long read() const {
        char text[20] = {};
        if (pread(file_, text, 19, 0) != 19) throw std::runtime_error("the counter cannot be read");
        return std::atol(text);
    }
    void write(long value) const {
        char text[24];
        std::snprintf(text, sizeof text, "%019ld\n", value);
        if (pwrite(file_, text, 20, 0) != 20) throw std::runtime_error("the counter cannot be written");
    }

private:
    const int file_;
};

class CppClient final : public Client {
public:
    CppClient(const std::string& hosts, std::chrono::milliseconds timeout, const LockOptions& options)
        : session_(connected_session(hosts, timeout)), options_(options), thread_([this] { work(); }) {}
    ~CppClient() override {
        {
            const std::lock_guard lock(mutex_);
            ended_ = true;
        }
        session_.close();  // whatever still waits fails
        changed_.notify_all();
        thread_.join();
    }

    Answer ask(const Fields& words) override {
        Answer answer;
        {
            const std::lock_guard lock(mutex_);
            commands_.emplace_back(words, answer);
        }
        changed_.notify_all();
        return answer;
    }

private:
    void work() {
        for (;;) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return ended_ || !commands_.empty(); });
            if (commands_.empty()) return;
            const auto [words, answer] = std::move(commands_.front());
            commands_.pop_front();
            lock.unlock();
            try {
                answer.set(run(words));
            } catch (const std::exception& error) {
                answer.fail(error.what());
            }
        }
    }

    Fields run(const Fields& words) {
        const std::string& verb = words.at(0);
        Lock& lock = lock_of(words.at(1), words.at(2));
        if (verb == "acquire") {
            const std::chrono::milliseconds wait(std::stol(words.at(3)));
            const bool got = lock.acquire(wait < std::chrono::milliseconds(0) ? Deadline::never() : Deadline(wait));
            return {got ? "yes" : "no"};
        }
        if (verb == "release") return lock.release(), Fields{};
        if (verb == "participants") {
            Fields said;
            for (const auto& participant : lock.participants()) said.push_back(participant.raw);
            return said;
        }
        const Counter counter(words.at(4));
        for (int i = 0; i < std::stoi(words.at(3)); ++i) {
            lock.acquire(Deadline::never());
            verb == "count" ? count(counter) : look(counter);
            lock.release();
        }
        return {};
    }

    static void count(const Counter& counter) {
        const long value = counter.read();
        std::this_thread::yield();
        counter.write(value + 1);
    }

    static void look(const Counter& counter) {
        const long value = counter.read();
        std::this_thread::yield();
        if (counter.read() != value) throw std::runtime_error("the number changed while it was locked");
    }

    Lock& lock_of(const std::string& kind, const std::string& path) {
        const auto known = locks_.find({kind, path});
        if (known != locks_.end()) return known->second;
        return locks_[{kind, path}] = lock_of_kind(kind, session_, path, options_, read_write_locks_);
    }

    Session session_;
    const LockOptions options_;
    std::map<std::pair<std::string, std::string>, Lock> locks_;
    ReadWriteLocks read_write_locks_;
    std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::deque<std::pair<Fields, Answer>> commands_;
    bool ended_ = false;
    std::thread thread_;
};

}  // namespace

std::unique_ptr<Client> make_cpp_client(const std::string& hosts, std::chrono::milliseconds timeout, Names names) {
    LockOptions options;
    options.id = "a C++ client";
    options.dialect = names == Names::kazoo ? Dialect::kazoo : Dialect::curator;
    return std::make_unique<CppClient>(hosts, timeout, options);
}

}  // namespace zkrecipes::test
