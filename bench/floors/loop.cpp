#include "bench/floors/loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "bench/floors/program.hpp"

namespace zkrecipes::bench {

Loop::Loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event) != 0) fail("no epoll");
}

Loop::~Loop() {
    sessions_.clear();
    ::close(wake_);
    ::close(epoll_);
}

Loop::Driven& Loop::open(const std::string& hosts) {
    Driven& driven = sessions_.emplace_back(hosts);
    send(driven, [] {});
    while (!driven.connected) turn();
    return driven;
}

// After each event, send or deadline of a session, and only then: a call connects, sends pings and notices timeouts.
// After a send it also tells whether something is left that the socket did not take.
void Loop::ask(Driven& driven) {
    int descriptor = -1;
    int interest = 0;
    timeval wait{};
    check(zookeeper_interest(driven.session.handle(), &descriptor, &interest, &wait), "zookeeper_interest");
    driven.deadline = Clock::now() + std::chrono::seconds(wait.tv_sec) + std::chrono::microseconds(wait.tv_usec);
    epoll_event event{};
    event.events = (interest & ZOOKEEPER_READ ? EPOLLIN : 0U) | (interest & ZOOKEEPER_WRITE ? EPOLLOUT : 0U);
    event.data.ptr = &driven;
    if (descriptor == driven.descriptor && event.events == driven.events) return;
    if (driven.descriptor != -1 && descriptor != driven.descriptor) fail("the connection broke");
    const int change = driven.descriptor == -1 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (::epoll_ctl(epoll_, change, descriptor, &event) != 0) fail("epoll_ctl failed");
    driven.descriptor = descriptor;
    driven.events = event.events;
}

// One call reads one packet. With WRITE alone it would return ZOK for ever. If more packets wait than one session may
// take in a turn, epoll tells of them again.
void Loop::process(Driven& driven, std::uint32_t events) {
    constexpr int kMostPackets = 64;
    const int ready = ZOOKEEPER_READ | (events & EPOLLOUT ? ZOOKEEPER_WRITE : 0);
    int rc = ZOK;
    for (int i = 0; i < kMostPackets && rc == ZOK; ++i) rc = zookeeper_process(driven.session.handle(), ready);
    if (rc != ZNOTHING) check(rc, "zookeeper_process");
    ask(driven);
}

// A session whose answer has come is processed before it is asked, also if the loop is late: otherwise the C client
// would see a timeout.
void Loop::turn() {
    std::array<epoll_event, 64> ready;
    const int count = ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), milliseconds_to_wait());
    const std::lock_guard guard(mutex_);
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = ready[static_cast<std::size_t>(i)];
        if (event.data.ptr != nullptr) process(*static_cast<Driven*>(event.data.ptr), event.events);
    }
    const auto now = Clock::now();
    for (Driven& driven : sessions_) {
        if (driven.deadline <= now) ask(driven);
    }
}

void Loop::wake() const {
    if (::eventfd_write(wake_, 1) != 0) fail("eventfd_write failed");
}

int Loop::milliseconds_to_wait() {
    const std::lock_guard guard(mutex_);
    auto first = Clock::time_point::max();
    for (const Driven& driven : sessions_) first = std::min(first, driven.deadline);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(first - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 10'000));
}

}  // namespace zkrecipes::bench
