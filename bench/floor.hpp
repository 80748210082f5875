#pragma once

#include <zookeeper/zookeeper.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/floors/loop.hpp"

namespace zkrecipes::bench {

/// Counts down to zero from any thread, while one thread waits for it. Then it may be armed again.
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

// The floors: the least that a lock can cost, written straight on the C client. A floor sends the requests without
// which nobody could know that the lock is free, and believes every answer. It has no lease, no retries and no
// clean-up, and it tells nobody of a loss: nobody should use it. It ends the program on any error, because a benchmark
// of errors says nothing. The counting test of the floors (tests/server/bench_floor_test.cpp) checks the numbers of
// requests below.
//
// Each object is for one thread.

/// One session of the C client, and a thread that drives it.
class FloorClient {
public:
    explicit FloorClient(const std::string& hosts);
    ~FloorClient();
    FloorClient(const FloorClient&) = delete;
    FloorClient& operator=(const FloorClient&) = delete;

    std::int64_t session_id() const { return zoo_client_id(handle())->client_id; }
    void make_path(const std::string& path);
    /// One read and its answer.
    void round_trip() { (void)children("/zookeeper"); }
    int children(const std::string& path);
    std::string data_of(const std::string& node);

protected:
    /// The answers, so many, count down what wait() waits for. `requests` sends them, by the functions below.
    template <class Requests>
    void send(int answers, Requests&& requests) {
        answered_.arm(answers);
        loop_.send(driven_, std::forward<Requests>(requests));
    }
    // Each sends one request, in send() or in a callback of the C client.
    void send_create(const std::string& directory, const char* kind, const std::string& data, std::string& created);
    void send_exists(const std::string& path, int& children);
    void send_delete(const std::string& node, bool answered);
    void wait() { answered_.wait(); }
    void answered() { answered_.done(); }
    static std::string new_name(const char* kind);
    zhandle_t* handle() const { return driven_.session.handle(); }

private:
    Loop loop_;
    Loop::Driven& driven_;
    Countdown answered_;
    std::atomic<bool> ended_{false};
    std::thread thread_;
};

/// An exclusive lock.
class FloorLock : public FloorClient {
public:
    /// `data` is what the nodes contain; give it the length of what the library writes.
    FloorLock(const std::string& hosts, std::string directory, std::string data = {});

    /// The lock must be free. Two requests, one round trip: create, exists(directory).
    void acquire_free();
    /// For a lock that others want, too. Two requests, one round trip: create, list. Somebody is in front: a third one
    /// that watches the predecessor. Its end is the grant.
    void acquire();
    /// One request. Nobody waits for the answer.
    void release() {
        send(0, [this] { send_delete(node_, false); });
    }
    void release_and_wait();

    const std::string& node() const { return node_; }

private:
    void wait_for_end_of(const std::string& predecessor);

    const std::string directory_;
    const std::string data_;
    std::string node_;
    int children_ = 0;
    std::vector<std::string> listed_;
    Countdown turn_;
};

/// A lock over n free paths. A cycle is n + 2 requests, of which one round trip is for the acquire: one multi that
/// creates all nodes, and exists of each directory, sent together; one multi that deletes all nodes.
class FloorSet : public FloorClient {
public:
    FloorSet(const std::string& hosts, std::vector<std::string> directories, std::string data);
    void acquire();
    void release_and_wait();

private:
    void send_multi(const std::vector<zoo_op_t>& operations);

    const std::vector<std::string> directories_;
    const std::string data_;
    std::vector<std::string> nodes_;  // buffers of the C client
    std::vector<int> children_;
    std::vector<zoo_op_result_t> results_;
};

/// A semaphore of one free lease, with Curator's folders. A cycle is 4 requests, of which one round trip is for the
/// acquire: create of the lease, exists of the waiters' directory (empty: nobody is overtaken) and of the leases'
/// directory (one child: the lease is ours), sent together; delete. With a second child it would have to give the lease
/// back and stand in the queue.
class FloorSemaphoreMutex : public FloorClient {
public:
    FloorSemaphoreMutex(const std::string& hosts, std::string path, std::string data);
    void acquire();
    void release_and_wait();

private:
    const std::string path_;
    const std::string data_;
    std::string node_;
    int waiters_ = 0;
    int leases_ = 0;
};

/// Many waiters of one session on one path. The session keeps at most two nodes in the queue, that of the holder and
/// that of the next. A hold is 3 requests: create of the node after the next, exists(directory), which would tell of
/// other sessions in between, and delete of the own node. The answer to the delete grants the next.
class FloorCrowd : public FloorClient {
public:
    FloorCrowd(const std::string& hosts, std::string directory, std::string data);
    /// Gives the lock to so many waiters, each of which gives it back at once.
    void drain(int waiters);

private:
    void granted();

    const std::string directory_;
    const std::string data_;
    // Used by the callbacks of the C client, once the drain has begun.
    std::string holder_;
    std::string next_;
    std::string after_next_;
    int queued_ = 0;
    int to_create_ = 0;
    int to_grant_ = 0;
    Countdown drained_;
};

}  // namespace zkrecipes::bench
