#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/runtime.hpp"

namespace zkrecipes::internal {

/// The thread that looks after the socket of one handle of the C client.
class ZkDriver {
public:
    /// What to wait for: `events` of poll() on `socket` (-1: nothing), or that some time passes (negative: it does
    /// not).
    struct Wait {
        int socket = -1;
        short events = 0;
        Nanoseconds time{-1};
    };
    /// Called on the thread, first at once, then when what it has answered is there, and after look(). `ready`: what
    /// poll() says of the socket.
    using Drive = std::function<Wait(short ready)>;

    /// `name`: of the thread. Throws std::system_error.
    ZkDriver(std::string name, Drive drive);
    /// Waits for a call of `drive` that is under way, unless that is where it is destroyed. There is none afterwards.
    ~ZkDriver();
    ZkDriver(const ZkDriver&) = delete;
    ZkDriver& operator=(const ZkDriver&) = delete;

    void look() noexcept;  ///< Any thread.

private:
    struct State;  // it lives as long as the thread
    static void run(State& state) noexcept;

    const std::shared_ptr<State> state_;
    std::thread thread_;
};

}  // namespace zkrecipes::internal
