#include "base/threads/loop.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace zkrecipes::internal {
namespace {

using namespace std::chrono_literals;

/// Does its pieces one after the other, and notes what it did.
struct Pieces : Serial {
    explicit Pieces(std::vector<std::function<void()>> all) : left(std::move(all)) {}
    bool run_one() noexcept override {
        left[done++]();
        return done < left.size();
    }
    std::vector<std::function<void()>> left;
    std::size_t done = 0;
};
std::shared_ptr<Serial> pieces(std::vector<std::function<void()>> all) {
    return std::make_shared<Pieces>(std::move(all));
}

/// Two ends of a connection.
struct Ends {
    Ends() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0); }
    ~Ends() {
        close(0);
        close(1);
    }
    void close(int end) {
        if (fd[end] >= 0) ::close(std::exchange(fd[end], -1));
    }
    void send() const { EXPECT_EQ(::write(fd[1], "x", 1), 1); }
    void receive() const {
        char byte = 0;
        EXPECT_EQ(::read(fd[0], &byte, 1), 1);
    }
    int fd[2] = {-1, -1};
};

bool readable(const Loop& loop) {
    pollfd fd{loop.fd(), POLLIN, 0};
    return ::poll(&fd, 1, 0) == 1;
}

TEST(LoopTest, WhatIsScheduledTakesTurns) {
    Loop loop;
    std::vector<int> order;
    const auto note = [&](int number) { return [&order, number] { order.push_back(number); }; };
    loop.schedule(pieces({note(1), note(3), note(5)}));
    loop.schedule(pieces({note(2), note(4)}));
    while (readable(loop)) loop.poll();
    EXPECT_EQ(order, (std::vector{1, 2, 3, 4, 5}));
}

TEST(LoopTest, ItsDescriptorTellsThatThereIsSomethingToDo) {
    Loop loop;
    Ends ends;
    int ready = 0;
    EXPECT_FALSE(readable(loop));
    loop.schedule(pieces({[] {}}));
    EXPECT_TRUE(readable(loop));
    loop.poll();
    EXPECT_FALSE(readable(loop));
    const auto watch = loop.watch(ends.fd[0], EPOLLIN, [&](std::uint32_t) {
        ends.receive();
        ++ready;
    });
    EXPECT_FALSE(readable(loop));
    ends.send();
    EXPECT_TRUE(readable(loop));
    loop.poll();
    EXPECT_EQ(ready, 1);
    EXPECT_FALSE(readable(loop));
    loop.unwatch(watch);
    bool ran = false;
    const auto alarm = loop.make_alarm([&] { ran = true; });
    EXPECT_FALSE(readable(loop));
    loop.set(alarm, boot_now() + 10ms);
    pollfd fd{loop.fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&fd, 1, 30'000), 1);
    loop.poll();
    EXPECT_TRUE(ran);
    EXPECT_FALSE(readable(loop));
}

TEST(LoopTest, AlarmsRunInTheOrderOfTheirInstantsOnceForEachTimeThatTheyAreSet) {
    Loop loop;
    const Instant past = boot_now() - 1h;
    std::vector<int> order;
    std::vector<std::shared_ptr<Alarm>> alarms;
    for (int i = 0; i < 20; ++i) alarms.push_back(loop.make_alarm([&order, i] { order.push_back(i); }));
    for (const int i : {7, 3, 11, 5, 19, 2}) loop.set(alarms[static_cast<std::size_t>(i)], past + i * 1ms);
    loop.set(alarms[11], Instant::max());
    loop.set(alarms[19], past + 4ms);
    loop.remove(alarms[5]);
    loop.poll();
    EXPECT_EQ(order, (std::vector{2, 3, 19, 7}));
    loop.poll();
    EXPECT_FALSE(readable(loop)) << "the kernel's timer is set anew";
    EXPECT_EQ(order.size(), 4U);
    loop.set(alarms[7], past);
    loop.poll();
    EXPECT_EQ(order.back(), 7);
}

TEST(LoopTest, AnAlarmThatIsRemovedLeavesNothingBehind) {
    Loop loop;
    const auto owned = std::make_shared<int>(1);
    auto alarm = loop.make_alarm([owned] { FAIL(); });
    loop.set(alarm, boot_now() - 1h);
    loop.remove(alarm);
    alarm.reset();
    EXPECT_EQ(owned.use_count(), 1);
    loop.poll();
    EXPECT_FALSE(readable(loop));
}

TEST(LoopTest, AWatchTellsOnlyWhatIsWanted) {
    Loop loop;
    Ends ends;
    std::vector<std::uint32_t> told;
    const auto watch = loop.watch(ends.fd[0], 0, [&](std::uint32_t events) { told.push_back(events); });
    ends.send();
    loop.poll();
    EXPECT_TRUE(told.empty());
    loop.want(watch, EPOLLOUT);
    loop.poll();
    loop.want(watch, EPOLLIN);
    loop.poll();
    EXPECT_EQ(told, (std::vector<std::uint32_t>{EPOLLOUT, EPOLLIN}));
    loop.want(watch, 0);
    ends.close(1);
    loop.poll();
    EXPECT_FALSE(readable(loop)) << "nothing, also if the other side hangs up";
    EXPECT_EQ(told.size(), 2U);
}

TEST(LoopTest, AWatchThatHasEndedIsNotToldWhatTheKernelHasToldAlready) {
    Loop loop;
    const Ends first, second;
    Loop::WatchId watches[2] = {};
    int told = 0;
    const auto end_the_other = [&](int other) {
        return [&, other](std::uint32_t) {
            ++told;
            loop.unwatch(watches[other]);
        };
    };
    watches[0] = loop.watch(first.fd[0], EPOLLIN, end_the_other(1));
    watches[1] = loop.watch(second.fd[0], EPOLLIN, end_the_other(0));
    first.send();
    second.send();
    loop.poll();
    loop.poll();
    EXPECT_EQ(told, 2) << "each turn tells the one that is left";
}

TEST(LoopTest, AWatchMayEndInItsOwnCall) {
    Loop loop;
    const Ends ends;
    const auto owned = std::make_shared<int>(1);
    Loop::WatchId watch = 0;
    watch = loop.watch(ends.fd[0], EPOLLIN, [&, owned](std::uint32_t) {
        loop.unwatch(watch);
        EXPECT_EQ(*owned, 1);
    });
    ends.send();
    loop.poll();
    EXPECT_EQ(owned.use_count(), 1);
    loop.poll();
}

TEST(LoopTest, AChildThatHoldsTheConnectionDoesNotKeepTheWatch) {
    Loop loop;
    Ends ends;
    int told = 0;
    const auto watch = loop.watch(ends.fd[0], EPOLLIN, [&](std::uint32_t) { ++told; });
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) {  // has copies of all descriptors until the parent's end of the pipe is closed
        ::close(pipe[1]);
        char byte = 0;
        ::_exit(static_cast<int>(::read(pipe[0], &byte, 1)));
    }
    ends.send();
    ends.close(0);
    loop.unwatch(watch);
    loop.poll();
    EXPECT_EQ(told, 0);
    EXPECT_FALSE(readable(loop));
    ::close(pipe[1]);
    ::close(pipe[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
}

TEST(LoopTest, AnotherThreadEndsIt) {
    Loop loop;
    std::atomic<int> ran = 0;
    std::thread driver([&] { loop.run(); });
    loop.schedule(pieces({[&] { ++ran; }, [&] { ++ran; }, [&] { ++ran; }}));
    loop.end();
    driver.join();
    EXPECT_EQ(ran, 3) << "what was scheduled before";
}

TEST(LoopTest, ADescriptorThatCannotBeWatchedIsAnError) {
    Loop loop;
    EXPECT_THROW(loop.watch(-1, EPOLLIN, [](std::uint32_t) {}), std::system_error);
    const int file = ::open("/proc/self/comm", 0);
    EXPECT_THROW(loop.watch(file, EPOLLIN, [](std::uint32_t) {}), std::system_error);
    ::close(file);
}

}  // namespace
}  // namespace zkrecipes::internal
