#include "zklock/report/console.hpp"

#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <boost/json/object.hpp>

#include "zklock/command_line/options.hpp"
#include "zklock/report/events.hpp"
#include "zklock/report/explain.hpp"
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

namespace {

constexpr std::size_t kTimestampSize = 24;

void put_digits(char* end, int count, long long value) noexcept {
    for (; count > 0; --count, value /= 10) *--end = static_cast<char>('0' + value % 10);
}

/// Async-signal-safe: neither gmtime, which would read the file of the time zone, nor snprintf.
void put_timestamp(char* text) noexcept {
    using namespace std::chrono;
    const auto now = floor<milliseconds>(system_clock::now());
    const auto midnight = floor<days>(now);
    const year_month_day date(midnight);
    const hh_mm_ss time(now - midnight);
    std::memcpy(text, "0000-00-00T00:00:00.000Z", kTimestampSize);
    put_digits(text + 4, 4, static_cast<int>(date.year()));
    put_digits(text + 7, 2, static_cast<unsigned>(date.month()));
    put_digits(text + 10, 2, static_cast<unsigned>(date.day()));
    put_digits(text + 13, 2, time.hours().count());
    put_digits(text + 16, 2, time.minutes().count());
    put_digits(text + 19, 2, time.seconds().count());
    put_digits(text + 23, 3, time.subseconds().count());
}

}  // namespace

std::string timestamp_now() {
    char text[kTimestampSize];
    put_timestamp(text);
    return {text, sizeof text};
}

void PreparedWarning::write(std::string_view rest) const noexcept {
    if (before_.empty()) return;
    char line[PIPE_BUF];
    std::size_t size = 0;
    for (const std::string_view part : {std::string_view(before_), rest, std::string_view(after_)}) {
        const std::size_t length = std::min(part.size(), sizeof line - size);
        std::memcpy(line + size, part.data(), length);
        size += length;
    }
    if (time_at_ + kTimestampSize <= size && time_at_ != std::string_view::npos) put_timestamp(line + time_at_);
    write_if_ready(2, {line, size});
}

Console::Console(const Options& options)
    : lock_(options.lock),
      tick_origin_(origin_of_tick(options)),
      quiet_(options.quiet),
      verbose_(options.verbose),
      json_(options.json),
      holds_(takes_a_lock(options.command)) {
    const bool terminal = ::isatty(2) != 0;
    progress_ = options.progress == Progress::always || (options.progress == Progress::automatic && terminal);
    if (quiet_ || json_) progress_ = false;
}

void Console::info(const std::string& text) {
    if (verbose_ > 0) say("info", text);
}

std::string Console::line(const char* level, const std::string& text) const {
    if (!json_) return "zklock: " + std::string(level[0] == 'w' ? "warning: " : "") + printable(text) + "\n";
    return dump({{"v", 1}, {"ts", timestamp_now()}, {"level", level}, {"message", text}}) + "\n";
}

PreparedWarning Console::prepare_warning(const std::string& text) const {
    PreparedWarning warning;
    if (quiet_) return warning;
    const std::string whole = line("warning", text);
    const std::size_t end = whole.size() - (json_ ? 3 : 1);  // before `"}`
    warning.before_ = whole.substr(0, end);
    warning.after_ = whole.substr(end);
    constexpr std::string_view kTime = "\"ts\":\"";
    if (json_) warning.time_at_ = whole.find(kTime) + kTime.size();
    return warning;
}

void Console::say(const char* level, const std::string& text) {
    if (quiet_) return;
    std::string line = this->line(level, text);
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

class ConsoleSink final : public spdlog::sinks::base_sink<std::mutex> {
public:
    explicit ConsoleSink(Console& console) : console_(console) {}

private:
    void sink_it_(const spdlog::details::log_msg& message) override {
        console_.library_line(message.level >= spdlog::level::warn, message.level >= spdlog::level::critical,
                              std::string(message.payload.data(), message.payload.size()));
    }
    void flush_() override {}

    Console& console_;
};

void Console::library_line(bool warning, bool serious, const std::string& text) {
    // Only the log tells of this: the library makes a new node, and the call goes on waiting.
    if (warning && text.find("deleted by somebody else") != std::string::npos) {
        return this->warning("the lock node of zklock was removed while it waited for " + lock_ +
                             ": zklock waits again, at the tail of the queue");
    }
    // The guarantee of the lock rests on it.
    const auto tells_of = [&text](const char* what) { return text.find(what) != std::string::npos; };
    if (warning && holds_ &&
        (tells_of("tickTime") || tells_of("seem not to be ZooKeeper") || tells_of("changed the session timeout"))) {
        return this->warning(in_words(text, tick_origin_));
    }
    if (verbose_ > 0 || serious) say(warning ? "warning" : "info", with_names_of_options(text, tick_origin_));
}

std::shared_ptr<spdlog::logger> Console::logger() {
    auto logger = std::make_shared<spdlog::logger>("zklock", std::make_shared<ConsoleSink>(*this));
    // zklock itself prints what matters; the lines of the library need -v.
    // The session tells SessionEvents only of lines that its logger takes.
    logger->set_level(quiet_ ? spdlog::level::err : verbose_ < 2 ? spdlog::level::warn : spdlog::level::debug);
    return logger;
}

}  // namespace zkrecipes::zklock
