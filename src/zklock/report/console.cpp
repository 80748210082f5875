#include "zklock/report/console.hpp"

#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <boost/json/object.hpp>

#include "zklock/command_line/options.hpp"
#include "zklock/report/events.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/text.hpp"

namespace zkrecipes::zklock {

Written write_ready(int fd, std::string_view text) noexcept {
    struct stat status {};
    // A pipe that is ready takes PIPE_BUF bytes without blocking; a file takes everything in one piece.
    const bool file = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    const std::size_t most = file ? std::max<std::size_t>(text.size(), 1) : PIPE_BUF;
    Written written;
    while (written.size < text.size()) {
        pollfd ready{fd, POLLOUT, 0};
        if (::poll(&ready, 1, 0) != 1) break;  // errors are ready, too: the write says which
        const ssize_t size = ::write(fd, text.data() + written.size, std::min(text.size() - written.size, most));
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno != EAGAIN) written.error = errno;
        if (size < 0) break;
        written.size += static_cast<std::size_t>(size);
    }
    return written;
}

bool write_if_ready(int fd, std::string_view text) noexcept { return write_ready(fd, text).size == text.size(); }

std::string timestamp_now() {
    using namespace std::chrono;
    const auto now = floor<milliseconds>(system_clock::now());
    const auto midnight = floor<days>(now);
    const year_month_day date(midnight);
    const hh_mm_ss time(now - midnight);
    char text[48];  // gmtime would read the file of the time zone
    std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                  static_cast<int>(time.seconds().count()), static_cast<int>(time.subseconds().count()));
    return text;
}

Console::Console(const Options& options) : quiet_(options.quiet), verbose_(options.verbose), json_(options.json) {
    const bool terminal = ::isatty(2) != 0;
    progress_ = options.progress == Progress::always || (options.progress == Progress::automatic && terminal);
    if (quiet_ || json_) progress_ = false;
}

void Console::info(const std::string& text) {
    if (verbose_ > 0) say("info", text);
}

void Console::say(const char* level, const std::string& text) {
    if (quiet_) return;
    std::string line;
    if (json_) {
        const boost::json::object object = {{"v", 1}, {"ts", timestamp_now()}, {"level", level}, {"message", text}};
        line = dump(object) + "\n";
    } else {
        line = "zklock: " + std::string(level[0] == 'w' ? "warning: " : "") + printable(text) + "\n";
    }
    const std::lock_guard lock(mutex_);
    if (!shown_.empty()) line = "\r\x1b[K" + line;
    shown_.clear();
    write_if_ready(2, line);
}

void Console::progress(const std::string& line) {
    if (!progress_) return;
    const std::lock_guard lock(mutex_);
    if (line == shown_) return;
    std::string cut = printable(line);
    winsize size{};
    if (::ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) cut = fit(cut, size.ws_col - 1U);
    write_if_ready(2, "\r\x1b[K" + cut);
    shown_ = line;
}

namespace {

class ConsoleSink final : public spdlog::sinks::base_sink<std::mutex> {
public:
    explicit ConsoleSink(Console& console) : console_(console) {}

private:
    void sink_it_(const spdlog::details::log_msg& message) override {
        const std::string text(message.payload.data(), message.payload.size());
        if (message.level >= spdlog::level::warn) {
            console_.warning(text);
        } else {
            console_.info(text);
        }
    }
    void flush_() override {}

    Console& console_;
};

}  // namespace

std::shared_ptr<spdlog::logger> Console::logger() {
    auto logger = std::make_shared<spdlog::logger>("zklock", std::make_shared<ConsoleSink>(*this));
    // zklock itself prints what matters; the lines of the library need -v.
    logger->set_level(quiet_          ? spdlog::level::off
                      : verbose_ == 0 ? spdlog::level::critical
                      : verbose_ == 1 ? spdlog::level::warn
                                      : spdlog::level::debug);
    return logger;
}

}  // namespace zkrecipes::zklock
