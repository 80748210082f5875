#pragma once

#include <zookeeper/zookeeper.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace zkrecipes::chaos {

/// The C client as it is, and a thread that drives it, for those in the harness that must not depend on the library:
/// the outside observer and the naive holders.
class RawHandle {
public:
    /// Tries the hosts in the given order. `on_state` runs on the thread with each new ZOO_..._STATE.
    RawHandle(const std::string& hosts, std::chrono::milliseconds timeout, std::function<void(int)> on_state = {});
    ~RawHandle();
    RawHandle(const RawHandle&) = delete;
    RawHandle& operator=(const RawHandle&) = delete;

    int state() const noexcept { return state_; }
    bool connected() const noexcept { return state_ == ZOO_CONNECTED_STATE; }
    bool expired() const noexcept { return state_ == ZOO_EXPIRED_SESSION_STATE; }
    bool wait_connected(std::chrono::milliseconds limit);

    /// Calls a function of the C client. Nothing else does meanwhile; callbacks may ask, too.
    template <class Call>
    auto ask(Call call) {
        const std::lock_guard lock(client_);
        const auto answer = call(handle_);
        wake();
        return answer;
    }

    // These block until the answer is there.
    struct Made {
        int rc = ZCONNECTIONLOSS;
        std::string path{};
        std::int64_t czxid = 0;
    };
    Made create(const std::string& path, int flags);
    /// Empty: not answered with a list.
    std::optional<std::vector<std::string>> children(const std::string& path);
    /// Makes a persistent node and its parents; what is there already is fine. Throws std::runtime_error.
    void make_path(const std::string& path);

private:
    static void watch(zhandle_t* handle, int type, int state, const char* path, void* context);
    void drive(const std::stop_token& stop);
    void wake() const;

    std::function<void(int)> on_state_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<int> state_{0};
    std::recursive_mutex client_;  // held in the C client
    zhandle_t* handle_ = nullptr;
    const int wake_;
    std::jthread driver_;
};

}  // namespace zkrecipes::chaos
