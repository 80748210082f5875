#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "chaos/board.hpp"

namespace zkrecipes::chaos {

/// One actor: a process of its own, with the board, a pipe for commands and a pipe for replies. It is killed when this
/// object goes, and by the kernel when the controller dies, however that happens; also while it is stopped.
///
/// Make it on a thread that lives as long as the process: the kernel takes the end of the thread that forked for the
/// death of the parent.
class ActorProcess {
public:
    ActorProcess(const Board& board, const std::vector<std::string>& arguments);
    ActorProcess(ActorProcess&& other) noexcept;
    ActorProcess& operator=(ActorProcess&&) = delete;
    ~ActorProcess();

    pid_t pid() const noexcept { return pid_; }
    void send(const std::string& command);
    /// Waits for a line that begins with `beginning`, passing over others. Throws std::runtime_error with everything
    /// that the actor said, when the time is over, when it ends, or when it says "error".
    std::string expect(const std::string& beginning, std::chrono::milliseconds limit);
    /// The last line so far that begins with `beginning`; empty: none.
    std::string last(const std::string& beginning);
    /// Waits until the last line "state ..." says `state`.
    bool wait_state(const std::string& state, std::chrono::milliseconds limit);

    void resume();  // SIGCONT
    bool is_stopped() const;
    /// Asks it to end and waits. The exit code; -1: killed, because it did not end in time.
    int quit(std::chrono::milliseconds limit);
    /// Waits for it to end by itself; -1: it did not in time (and is still there), or was killed.
    int wait(std::chrono::milliseconds limit);

    const std::deque<std::string>& lines() const noexcept { return lines_; }

private:
    bool read_more(std::chrono::milliseconds limit);  // false: nothing came, or the end
    [[noreturn]] void complain(const std::string& what) const;

    std::string name_;
    pid_t pid_ = -1;
    int commands_ = -1;
    int replies_ = -1;
    bool ended_ = false;  // the reply pipe
    std::string partial_;
    std::deque<std::string> lines_;
    std::size_t expected_ = 0;  // lines before this one have been passed over by expect()
};

/// Waits until the condition holds, looking often; false: not within the limit.
bool await(const std::function<bool()>& condition, std::chrono::milliseconds limit);

}  // namespace zkrecipes::chaos
