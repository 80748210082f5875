#include "zklock/outside.hpp"

#include <unistd.h>

#include <cerrno>

#include "zklock/describe.hpp"
#include "zklock/duration.hpp"
#include "zklock/lock_session.hpp"

namespace zkrecipes::zklock {

Outside::Outside(const Options& options, Console& console) : session_(open_session(options, console)) {
    const Deadline deadline = options.connect_timeout ? Deadline(*options.connect_timeout) : Deadline::never();
    if (session_.wait_connected(deadline)) return;
    throw Failure(kUnavailable, "no ZooKeeper server answered at " + printable(options.connect) + " within " +
                                    format_duration(*options.connect_timeout));
}

void print(const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t size = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return;
        done += static_cast<std::size_t>(size);
    }
}

}  // namespace zkrecipes::zklock
