#pragma once

#include <zookeeper/zookeeper.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

namespace zkrecipes::bench {

/// Counts down to zero from any thread, while one thread waits for it; then it may be armed again.
class Countdown {
public:
    void arm(int count) {
        const std::lock_guard lock(mutex_);
        count_ = count;
    }
    void done() {
        const std::lock_guard lock(mutex_);
        if (--count_ == 0) changed_.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return count_ <= 0; });
    }

private:
    std::mutex mutex_;  // guards count_
    std::condition_variable changed_;
    int count_ = 0;
};

/// The least that a lock can cost: the requests of the recipe sent straight to the C client, without any of what makes
/// it a lock that one can trust. For one thread; ends the program on any error, because a benchmark of errors says
/// nothing.
class FloorLock {
public:
    /// `data` is what the nodes carry; give it the length of what the library writes.
    FloorLock(const std::string& hosts, std::string directory, std::string data = {});
    ~FloorLock();
    FloorLock(const FloorLock&) = delete;
    FloorLock& operator=(const FloorLock&) = delete;

    void make_directory();
    std::string data_of(const std::string& node);
    /// Contenders in the queue of the directory.
    int contenders();

    /// Create and exists(directory), sent back to back; waits for both answers.
    void acquire();
    /// Sends the delete; nobody waits for the answer.
    void release();
    /// Sends the delete and waits for the answer.
    void release_and_wait();

    /// Stands in the queue behind `predecessor` and watches it.
    void queue_behind(const std::string& predecessor);
    /// Waits for the predecessor's end and then for one committed check of the own node: now it is held.
    void wait_for_turn();

    const std::string& node() const { return node_; }

private:
    static void on_session(zhandle_t*, int type, int state, const char*, void* self);
    static void on_predecessor(zhandle_t*, int type, int state, const char*, void* self);
    void create();
    void check(int rc, const char* what) const;

    zhandle_t* handle_ = nullptr;
    std::string directory_;
    std::string data_;
    std::string node_;
    std::string read_;
    std::int64_t token_ = 0;
    std::int32_t children_ = 0;
    std::uint64_t counter_ = 0;
    Countdown connected_;
    Countdown answered_;
    Countdown turn_;
};

}  // namespace zkrecipes::bench
