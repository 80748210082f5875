#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace spdlog {
class logger;
}

namespace zkrecipes::zklock {

struct Options;

struct Written {
    std::size_t size = 0;
    int error = 0;  ///< errno of what ended it; 0: all is written, or nobody reads at the moment
};
/// Writes as much as `fd` takes without blocking: a terminal that Ctrl-S stopped, or a full pipe, must not keep zklock
/// from watching the lock. Text up to PIPE_BUF is written in one piece or not at all.
Written write_ready(int fd, std::string_view text) noexcept;
/// The same. False: nobody reads, and the rest of the text is dropped.
bool write_if_ready(int fd, std::string_view text) noexcept;

/// A warning that is made before a fork and written in the new process, in which nobody unlocks what another thread had
/// locked.
class PreparedWarning {
public:
    /// Writes it with `rest` at its end: letters, digits and spaces. Async-signal-safe.
    void write(std::string_view rest) const noexcept;

private:
    friend class Console;
    std::string before_, after_;                    // of the rest; both empty: with --quiet
    std::size_t time_at_ = std::string_view::npos;  // where the line has its time
};

/// All messages of zklock, on stderr, since stdout belongs to the command. Safe for concurrent use.
class Console {
public:
    explicit Console(const Options& options);

    void error(const std::string& text) { say("error", text); }      ///< why zklock fails; not with --quiet
    void warning(const std::string& text) { say("warning", text); }  ///< not with --quiet
    void info(const std::string& text);                              ///< only with --verbose

    PreparedWarning prepare_warning(const std::string& text) const;

    bool shows_progress() const noexcept { return progress_; }
    void progress(const std::string& line);  ///< rewrites one line; "" removes it

    /// The logger for the library: its lines appear here, too, most of them only with --verbose.
    std::shared_ptr<spdlog::logger> logger();

private:
    friend class ConsoleSink;
    /// `serious`: shown without --verbose, too.
    void library_line(bool warning, bool serious, const std::string& text);
    void say(const char* level, const std::string& text);
    std::string line(const char* level, const std::string& text) const;

    const std::string lock_;
    const std::string tick_origin_;
    const bool quiet_;
    const int verbose_;
    const bool json_;
    const bool holds_;  // a lock
    bool progress_;
    std::mutex mutex_;  // guards shown_, and keeps lines whole
    std::string shown_;
};

/// "2026-01-02T03:04:05.678Z".
std::string timestamp_now();

}  // namespace zkrecipes::zklock
