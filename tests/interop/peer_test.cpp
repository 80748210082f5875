// The peers themselves: they say what went wrong, and none outlives the test.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "interop/interop_test.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A zombie has ended, whoever is to collect it.
bool has_ended(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    const auto name_end = text.rfind(')');
    return name_end == std::string::npos || text.compare(name_end + 2, 1, "Z") == 0;
}

class PeerTest : public InteropTest, public ::testing::WithParamInterface<Who> {
protected:
    static PeerLanguage language() { return GetParam() == Who::curator ? PeerLanguage::curator : PeerLanguage::kazoo; }
};

TEST_P(PeerTest, APeerDiesWithAKilledTestEvenWhileItIsStopped) {
    ZKRECIPES_NEEDS(GetParam());
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t controller = fork();
    if (controller == 0) {
        PeerProcess peer(language());
        const pid_t pid = peer.pid();
        if (write(ends[1], &pid, sizeof pid) != sizeof pid) _exit(1);
        pause();
        _exit(1);
    }
    pid_t peer = 0;
    ASSERT_EQ(read(ends[0], &peer, sizeof peer), static_cast<ssize_t>(sizeof peer));
    ASSERT_EQ(::kill(peer, SIGSTOP), 0);
    ASSERT_FALSE(has_ended(peer));
    ASSERT_EQ(::kill(controller, SIGKILL), 0);
    waitpid(controller, nullptr, 0);
    EXPECT_TRUE(await([&] { return has_ended(peer); }));
    close(ends[0]);
    close(ends[1]);
}

TEST_P(PeerTest, APeerDiesWithItsObjectAndWhatItWasAskedFails) {
    ZKRECIPES_NEEDS(GetParam());
    pid_t pid = 0;
    Answer never;
    {
        PeerProcess peer(language());
        pid = peer.pid();
        const auto holder = peer.client(connect_string(), kTimeout), waiter = peer.client(connect_string(), kTimeout);
        ASSERT_TRUE(holder->acquire("mutex", lock_path()).yes());
        never = waiter->acquire("mutex", lock_path());
        ASSERT_TRUE(await_nodes(2));
        EXPECT_FALSE(has_ended(pid));
    }
    EXPECT_TRUE(has_ended(pid));
    EXPECT_THROW(never.fields(), std::runtime_error);
}

TEST_P(PeerTest, WhatAPeerCannotDoIsSaidWithItsWords) {
    ZKRECIPES_NEEDS(GetParam());
    const auto peer = client(GetParam());
    EXPECT_THAT([&] { peer->release("mutex", lock_path()).fields(); },
                ThrowsMessage<std::runtime_error>(HasSubstr(GetParam() == Who::curator ? "do not own" : "not held")));
    EXPECT_THAT(
        [&] {
            peer->ask({"dance", "mutex", lock_path()}).fields();
        },
        ThrowsMessage<std::runtime_error>(HasSubstr("dance")));
}

INSTANTIATE_TEST_SUITE_P(Interop, PeerTest, ::testing::Values(Who::curator, Who::kazoo),
                         [](const auto& who) { return to_string(who.param); });

TEST_F(InteropTest, TheCounterLosesUpdatesWhenNothingProtectsIt) {
    // What the crowds below would show if the locks did not work: each client locks a mutex of its own here.
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<Answer> counts;
    const auto file = counter_file();
    for (int i = 0; i < 8; ++i) clients.push_back(client(Who::cpp));
    EXPECT_TRUE(await([&] {
        long rounds = 0;
        const long before = counted();
        counts.clear();
        for (std::size_t i = 0; i < clients.size(); ++i, rounds += 50) {
            counts.push_back(clients[i]->count("mutex", path("lock" + std::to_string(i)), 50, file));
        }
        for (const auto& count : counts) count.fields();
        return counted() < before + rounds;
    }));
}

}  // namespace
}  // namespace zkrecipes::test
