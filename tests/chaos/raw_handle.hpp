#pragma once

#include <zookeeper/zookeeper.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

namespace zkrecipes::chaos {

/// The C client as it is, for those in the harness that must not depend on the library: the outside observer and the
/// naive holders.
class RawHandle {
public:
    /// Tries the hosts in the given order. `on_state` runs on the C client's thread with each new ZOO_..._STATE.
    RawHandle(const std::string& hosts, std::chrono::milliseconds timeout, std::function<void(int)> on_state = {});
    ~RawHandle();
    RawHandle(const RawHandle&) = delete;
    RawHandle& operator=(const RawHandle&) = delete;

    zhandle_t* get() const noexcept { return handle_; }
    int state() const noexcept { return state_; }
    bool connected() const noexcept { return state_ == ZOO_CONNECTED_STATE; }
    bool expired() const noexcept { return state_ == ZOO_EXPIRED_SESSION_STATE; }
    bool wait_connected(std::chrono::milliseconds limit);

    /// Makes a persistent node and its parents; what is there already is fine. Blocks. Throws std::runtime_error.
    void make_path(const std::string& path);

private:
    static void watch(zhandle_t* handle, int type, int state, const char* path, void* context);

    std::function<void(int)> on_state_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<int> state_{0};
    zhandle_t* handle_ = nullptr;
};

}  // namespace zkrecipes::chaos
