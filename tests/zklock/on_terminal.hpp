#pragma once

#include <fcntl.h>
#include <pty.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {

/// A program on a terminal of its own.
class OnTerminal {
public:
    explicit OnTerminal(std::vector<std::string> argv) {
        std::vector<char*> pointers;
        for (std::string& text : argv) pointers.push_back(text.data());
        pointers.push_back(nullptr);
        const pid_t parent = ::getpid();
        pid_ = ::forkpty(&master_, nullptr, nullptr, nullptr);
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) ::_exit(1);
            ::setenv("PS1", "PROMPT> ", 1);
            ::setenv("TERM", "dumb", 1);
            ::execvp(pointers[0], pointers.data());
            ::_exit(99);
        }
        ::fcntl(master_, F_SETFD, FD_CLOEXEC);
        ::fcntl(master_, F_SETFL, O_NONBLOCK);
    }
    ~OnTerminal() {
        if (pid_ > 0) {
            close();
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
        if (testing::Test::HasFailure()) std::fprintf(stderr, "--- terminal:\n%s---\n", seen_.c_str());
    }
    /// As when the window is closed: the kernel sends HUP to whom the terminal belongs.
    void close() { ::close(std::exchange(master_, -1)); }
    /// shows() looks for what comes after this.
    void mark() { mark_ = seen_.size(); }
    void type(const std::string& text) {
        mark();
        ASSERT_EQ(::write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    /// Waits until this appears after what was typed last.
    bool shows(const std::string& text) {
        return await([&] {
            read_all();
            return seen_.find(text, mark_) != std::string::npos;
        });
    }
    int wait() {
        int status = 0;
        const bool ended = await([&] {
            read_all();
            return ::waitpid(pid_, &status, WNOHANG) == pid_;
        });
        if (!ended) return 1000;
        pid_ = -1;
        read_all();
        left_a_core_ = WIFSIGNALED(status) && WCOREDUMP(status);
        return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    }
    bool left_a_core() const { return left_a_core_; }
    pid_t foreground() const { return ::tcgetpgrp(master_); }
    pid_t pid() const { return pid_; }
    const std::string& seen() const { return seen_; }

private:
    void read_all() {
        char buffer[4096];
        for (ssize_t size = 0; (size = ::read(master_, buffer, sizeof buffer)) > 0;) {
            seen_.append(buffer, static_cast<std::size_t>(size));
        }
    }

    pid_t pid_ = -1;
    int master_ = -1;
    std::string seen_;
    std::size_t mark_ = 0;
    bool left_a_core_ = false;
};

class ZklockTerminalTest : public ZklockTest {
protected:
    std::vector<std::string> command(std::vector<std::string> rest) const {
        rest = with(std::move(rest));
        rest.insert(rest.begin(), ZKLOCK_BINARY);
        return rest;
    }
    std::string command_line(std::vector<std::string> rest) const {
        std::string line;
        for (const std::string& word : command(std::move(rest))) line += (line.empty() ? "'" : " '") + word + "'";
        return line;
    }
};

}  // namespace zkrecipes::zklock::test
