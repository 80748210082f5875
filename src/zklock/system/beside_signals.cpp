#include "zklock/system/beside_signals.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <exception>
#include <iterator>
#include <system_error>
#include <thread>

#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {

BesideSignals run_beside_signals(Signals& signals, const std::function<void(std::stop_token)>& work) {
    const UniqueFd ended(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!ended) throw std::system_error(errno, std::generic_category(), "eventfd");
    BesideSignals result;
    std::jthread worker([&](std::stop_token stop) {
        try {
            work(std::move(stop));
        } catch (...) {
            result.failure = std::current_exception();
        }
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t size = ::write(ended.get(), &one, sizeof one);
    });
    for (;;) {
        pollfd fds[] = {{signals.fd(), POLLIN, 0}, {ended.get(), POLLIN, 0}};
        ::poll(fds, std::size(fds), -1);
        while (const auto signal = signals.next_after_stops()) {
            if (!Signals::ends(*signal)) continue;
            if (result.signal == 0) result.signal = *signal;
            worker.request_stop();
        }
        if (fds[1].revents != 0) break;
    }
    worker.join();
    return result;
}

}  // namespace zkrecipes::zklock
