#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include <zkrecipes/testenv/scratch.hpp>
#include "zklock/parsed_json.hpp"

#include "support/await.hpp"

namespace zkrecipes::zklock::test {

using testenv::Scratch;

/// A zklock that runs beside the test. It dies with the test, also when that is killed.
class ZklockProcess {
public:
    struct Setup {
        std::vector<std::string> environment;  ///< "NAME=value", added; ZKLOCK_… of the test's own are taken away
        std::string input;                     ///< stdin; ended after it unless keep_input
        bool keep_input = false;
        std::vector<int> ignored_signals;
        std::vector<std::string> launcher;  ///< put before zklock
    };
    ZklockProcess(std::vector<std::string> arguments, Setup setup);
    explicit ZklockProcess(std::vector<std::string> arguments) : ZklockProcess(std::move(arguments), Setup{}) {}
    ~ZklockProcess();
    ZklockProcess(const ZklockProcess&) = delete;
    ZklockProcess& operator=(const ZklockProcess&) = delete;

    pid_t pid() const { return pid_; }
    void signal(int number) const;
    void end_input();
    bool running();
    /// Waits for the end; the exit code, or minus the signal that ended it.
    int wait();
    std::string out() const;
    std::string err() const;

private:
    bool reap(int flags);

    Scratch output_;
    pid_t pid_ = -1;
    int input_ = -1;
    int status_ = 0;
    bool ended_ = false;
};

/// Runs it to the end.
struct Outcome {
    int code = 0;
    std::string out, err;
};
Outcome zklock(std::vector<std::string> arguments, ZklockProcess::Setup setup = {});

bool exists(const std::string& file);
std::string read_file(const std::string& file);
std::vector<Json> read_events(const std::string& file);
/// The lines that hold this event.
std::vector<Json> events_named(const std::string& file, const std::string& name);

}  // namespace zkrecipes::zklock::test
