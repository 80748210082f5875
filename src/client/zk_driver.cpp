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
#include <thread>
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

class ThreadDriver final : public ZkDriver {
public:
    ThreadDriver(std::string name, Drive drive);
    ~ThreadDriver() override;
    ThreadDriver(const ThreadDriver&) = delete;
    ThreadDriver& operator=(const ThreadDriver&) = delete;
    void look() noexcept override;

private:
    struct State;  // it lives as long as the thread
    static void run(State& state) noexcept;

    const std::shared_ptr<State> state_;
    std::thread thread_;
};

struct ThreadDriver::State {
    State(std::string of_the_thread, Drive what) : name(std::move(of_the_thread)), drive(std::move(what)) {}
    const std::string name;
    const Drive drive;
    const Socket wake{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    const ProcessMark process{};
    std::atomic<bool> woken{false}, over{false};
};

ThreadDriver::ThreadDriver(std::string name, Drive drive)
    : state_(std::make_shared<State>(std::move(name), std::move(drive))) {
    if (!state_->wake) throw std::system_error(errno, std::generic_category(), "a descriptor for the ZooKeeper client");
    const SignalMaskForNewThreads mask;
    thread_ = std::thread([state = state_] { run(*state); });
}

ThreadDriver::~ThreadDriver() {
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

void ThreadDriver::look() noexcept {
    if (state_->woken.exchange(true)) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto ignored = ::write(state_->wake.get(), &one, sizeof one);
}

void ThreadDriver::run(State& state) noexcept {
    pthread_setname_np(pthread_self(), state.name.c_str());
    short ready = 0;
    while (!state.over) {
        const ZkDriver::Wait wait = state.drive(ready);
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

}  // namespace

std::unique_ptr<ZkDriver> ZkDriver::on_own_thread(std::string name, Drive drive) {
    return std::make_unique<ThreadDriver>(std::move(name), std::move(drive));
}

}  // namespace zkrecipes::internal
