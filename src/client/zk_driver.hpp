#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/runtime.hpp"

namespace zkrecipes::internal {

/// Looks after the socket of one handle of the C client.
class ZkDriver {
public:
    /// What to wait for: `events` of poll() on `socket` (-1: nothing), or that some time passes (negative: it does
    /// not).
    struct Wait {
        int socket = -1;
        bool is_new = false;  // another socket than before, perhaps with the same number
        short events = 0;
        Nanoseconds time{-1};
    };
    /// Called soon, then when what it has answered is there, and after look(); never twice at a time. `ready`: what
    /// poll() says of the socket.
    using Drive = std::function<Wait(short ready)>;

    /// On the loop of the process: `drive` must not block, but for a log sink. Throws std::system_error.
    static std::unique_ptr<ZkDriver> on_the_loop(Drive drive);
    /// On a thread of this name. Throws std::system_error.
    static std::unique_ptr<ZkDriver> on_own_thread(std::string name, Drive drive);
    /// Waits for a call of `drive` that is under way, unless that is where it is destroyed. There is none afterwards.
    virtual ~ZkDriver() = default;
    virtual void look() noexcept = 0;  ///< Any thread.
};

}  // namespace zkrecipes::internal
