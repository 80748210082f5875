#include "chaos/actor_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <stdexcept>
#include <string>

#include "chaos/board.hpp"

namespace zkrecipes::chaos {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::chrono::milliseconds kMaxWait = 30s;

// Nobody listens there, so the actor waits for its connection.
std::vector<std::string> waiting_actor() { return {"role=client", "hosts=127.0.0.1:1", "dir=/x"}; }

// A zombie has ended, whoever is to collect it.
bool has_ended(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    const auto name_end = text.rfind(')');
    return name_end == std::string::npos || text.compare(name_end + 2, 1, "Z") == 0;
}

TEST(ActorProcessTest, AnActorDiesWithAKilledControllerEvenWhileItIsStopped) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t controller = fork();
    if (controller == 0) {
        const auto board = Board::create();
        ActorProcess actor(board, waiting_actor());
        if (!actor.wait_state("connecting", kMaxWait)) _exit(1);  // it has come as far as its own main()
        const pid_t pid = actor.pid();
        if (write(ends[1], &pid, sizeof(pid)) != sizeof(pid)) _exit(1);
        pause();
        _exit(1);
    }
    pid_t actor = 0;
    ASSERT_EQ(read(ends[0], &actor, sizeof(actor)), static_cast<ssize_t>(sizeof(actor)));
    ASSERT_EQ(kill(actor, SIGSTOP), 0);
    ASSERT_FALSE(has_ended(actor));
    ASSERT_EQ(kill(controller, SIGKILL), 0);
    waitpid(controller, nullptr, 0);
    EXPECT_TRUE(await([&] { return has_ended(actor); }, kMaxWait));
    close(ends[0]);
    close(ends[1]);
}

TEST(ActorProcessTest, AnActorDiesWithItsObject) {
    const auto board = Board::create();
    pid_t pid = 0;
    {
        const ActorProcess actor(board, waiting_actor());
        pid = actor.pid();
        ASSERT_FALSE(has_ended(pid));
    }
    EXPECT_TRUE(has_ended(pid));
}

TEST(ActorProcessTest, WhatAnActorCannotDoIsSaidWithItsWords) {
    std::signal(SIGPIPE, SIG_IGN);
    const auto board = Board::create();
    ActorProcess actor(board, {"role=nonsense"});
    try {
        actor.expect("connected", kMaxWait);
        FAIL() << "an unknown role was accepted";
    } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("unknown role nonsense"));
    }
    EXPECT_EQ(actor.wait(kMaxWait), 2);
}

}  // namespace
}  // namespace zkrecipes::chaos
