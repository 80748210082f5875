#pragma once

#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {

/// The holder reaches the server through a gate, everybody else directly. Its command and all descendants hold a flock
/// on a file as long as one of them is alive, and so the next holder can see whether they are.
class FaultyWorld : public ZklockTest {
protected:
    void SetUp() override {
        ZklockTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
        session_timeout_ = "6s";  // a stall of the machine between two steps of a test does not end the hold
        gate_ = std::make_unique<testenv::Gate>(server().endpoint());
    }

    /// The words by which the holder says which lock it wants, and how.
    virtual std::vector<std::string> wanted() const { return {mode_, lock()}; }

    enum class Kind { obedient, with_stubborn_grandchild, with_escaped_grandchild };
    /// Starts the holder; it is in its command on return.
    std::unique_ptr<ZklockProcess> hold(std::vector<std::string> options, Kind kind = Kind::obedient) {
        std::string command = "exec 9>" + (scratch_ / "alive") + "; flock 9; ";
        if (kind == Kind::with_stubborn_grandchild) command += "(trap '' TERM INT HUP; while :; do sleep 1; done) & ";
        // This one would outlive a zklock that is killed, and so this very test when that is killed: it looks itself.
        if (kind == Kind::with_escaped_grandchild) {
            command += "setsid sh -c \"trap '' TERM INT HUP; touch " + (scratch_ / "escaped") + "; while kill -0 " +
                       std::to_string(::getpid()) + "; do sleep 1; done\" & while [ ! -e " + (scratch_ / "escaped") +
                       " ]; do sleep 0.02; done; ";
        }
        command +=
            "touch " + (scratch_ / "held") + "; while :; do echo x >>" + (scratch_ / "ticks") + "; sleep 0.02; done";
        std::vector<std::string> arguments = {"--events", scratch_ / "events", "--result", scratch_ / "result"};
        arguments.insert(arguments.end(), options.begin(), options.end());
        arguments.insert(arguments.end(), {"-c", command});
        const std::vector<std::string> what = wanted();
        arguments.insert(arguments.end(), what.begin(), what.end());
        auto holder = std::make_unique<ZklockProcess>(with(arguments, gate_->connect_string()));
        EXPECT_TRUE(await([&] { return exists(scratch_ / "held"); })) << holder->err();
        return holder;
    }
    /// Takes the lock alone as soon as it can. Its session outlives delays; the short one is the holder's.
    std::unique_ptr<ZklockProcess> next_one(const std::string& command) {
        auto process = std::make_unique<ZklockProcess>(
            std::vector<std::string>{"--connect", connect_string(), "--session-timeout", "30", lock(), "-c", command});
        EXPECT_TRUE(await([&] { return queue_length() == 2; }));
        return process;
    }
    /// Its exit code: 0, nobody of the former holder's was alive when it held the lock.
    std::unique_ptr<ZklockProcess> rival() { return next_one("exec flock -n " + (scratch_ / "alive") + " true"); }
    std::size_t ticks() const { return read_file(scratch_ / "ticks").size(); }
    std::string last_reason() const {
        const auto lost = events_named(scratch_ / "events", "lost");
        return lost.empty() ? "" : lost.back()["reason"].text();
    }

    std::string mode_;  // of the holder, or of the waiter behind the gate
    std::unique_ptr<testenv::Gate> gate_;
};

}  // namespace zkrecipes::zklock::test
