#include "client/zk_driver.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <system_error>
#include <utility>

#include "base/process.hpp"
#include "base/signal_mask.hpp"
#include "base/socket.hpp"

namespace zkrecipes::internal {
namespace {

timespec timespec_of(Nanoseconds time) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    return {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
}

}  // namespace

struct ZkDriver::State {
    const std::string name;
    const Drive drive;
    const Socket wake{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    const ProcessMark process{};
    std::atomic<bool> woken{false}, over{false};
};

ZkDriver::ZkDriver(std::string name, Drive drive) : state_(std::make_shared<State>(std::move(name), std::move(drive))) {
    if (!state_->wake) throw std::system_error(errno, std::generic_category(), "a descriptor for the ZooKeeper client");
    const SignalMaskForNewThreads mask;
    thread_ = std::thread([state = state_] { run(*state); });
}

ZkDriver::~ZkDriver() {
    if (state_->process.inherited()) {  // a child of fork() does not have the thread
        new std::thread(std::move(thread_));
        return;
    }
    state_->over = true;
    if (std::this_thread::get_id() == thread_.get_id()) {
        thread_.detach();
        return;
    }
    look();
    thread_.join();
}

void ZkDriver::look() noexcept {
    if (state_->woken.exchange(true)) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto ignored = ::write(state_->wake.get(), &one, sizeof one);
}

void ZkDriver::run(State& state) noexcept {
    pthread_setname_np(pthread_self(), state.name.c_str());
    short ready = 0;
    while (!state.over) {
        const Wait wait = state.drive(ready);
        // If it has forked, this thread is all that the child has.
        if (state.over || state.process.inherited()) return;
        std::array<pollfd, 2> polled{{{state.wake.get(), POLLIN, 0}, {wait.socket, wait.events, 0}}};
        const timespec limit = timespec_of(wait.time);
        ::ppoll(polled.data(), polled.size(), wait.time < Nanoseconds(0) ? nullptr : &limit, nullptr);
        if (polled[0].revents != 0) {
            std::uint64_t count = 0;
            [[maybe_unused]] const auto ignored = ::read(state.wake.get(), &count, sizeof count);
            state.woken = false;
        }
        ready = polled[1].revents;
    }
}

}  // namespace zkrecipes::internal
