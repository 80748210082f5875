#include "client/zk_log.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

#include "base/default_logger.hpp"
#include "base/process.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::size_t kSlots = 64;
constexpr std::size_t kMaxQueued = 1000;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

spdlog::level::level_enum spdlog_level(ClientLogLevel level) {
    switch (level) {
        case ClientLogLevel::trace: return spdlog::level::trace;
        case ClientLogLevel::debug: return spdlog::level::debug;
        case ClientLogLevel::warn: return spdlog::level::warn;
        case ClientLogLevel::error: return spdlog::level::err;
    }
    return spdlog::level::err;
}

/// One function for the C client, and where its lines go.
class Slot : public std::enable_shared_from_this<Slot> {
public:
    struct Entry {
        std::shared_ptr<spdlog::logger> logger;
        spdlog::level::level_enum level;
        std::string message;
    };

    /// One more handle writes here.
    void add(const std::shared_ptr<spdlog::logger>& logger, const std::shared_ptr<Runtime>& runtime) {
        const std::lock_guard lock(mutex_);
        runtimes_.push_back({runtime.get(), runtime});
        logger_ = logger;
    }

    /// What is left when nobody uses it any more: to be destroyed where nothing is locked, since it may hold the last
    /// reference to a logger. Takes no memory.
    struct Rest {
        std::list<Entry> lines;
        std::shared_ptr<spdlog::logger> logger;
    };
    void remove(const Runtime* runtime, Rest& rest) noexcept {
        const std::lock_guard lock(mutex_);
        const auto found = std::ranges::find(runtimes_, runtime, &User::key);
        if (found != runtimes_.end()) runtimes_.erase(found);
        if (!runtimes_.empty()) return;
        rest.logger = std::move(logger_);
        filter_ = {};
        if (scheduled_) return;
        rest.lines.swap(queue_);
        dropped_ = 0;
    }

    void take(std::string_view text) {
        const ClientLogLine line = parse_client_log_line(text);
        // Destroyed after the lock was given back.
        std::shared_ptr<Runtime> runtime;
        std::shared_ptr<Turn> turn;
        {
            const std::lock_guard lock(mutex_);
            if (!logger_) return;
            const auto level = spdlog_level(filter_.level(line));
            if (!logger_->should_log(level)) return;
            if (queue_.size() >= kMaxQueued) {
                ++dropped_;
                return;
            }
            queue_.push_back({logger_, level, std::string(line.message)});
            if (scheduled_) return;
            runtime = any_runtime();
            if (!runtime) return;
            turn = std::make_shared<Turn>(shared_from_this());
            scheduled_ = true;
        }
        runtime->post(Lane::notifier, [turn] { turn->run(); });
    }

private:
    struct User {
        const Runtime* key;
        std::weak_ptr<Runtime> runtime;
    };

    /// One post of write(). A runtime that has been stopped drops it: then the next line tries again, perhaps on the
    /// runtime of another session, and the lines of a handle that is closed too late, and was the only one, are lost.
    class Turn {
    public:
        explicit Turn(std::shared_ptr<Slot> slot) : slot_(std::move(slot)) {}
        ~Turn() {
            if (!ran_) slot_->end_turn();
        }
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;
        void run() {
            ran_ = true;
            slot_->write();
        }

    private:
        const std::shared_ptr<Slot> slot_;
        bool ran_ = false;
    };

    /// Lines for a logger that nobody uses here any more are lost: its session has been closed, so that what the logger
    /// writes to may be gone.
    void end_turn() noexcept {
        std::list<Entry> lost;  // as in remove()
        const std::lock_guard lock(mutex_);
        scheduled_ = false;
        for (auto next = queue_.begin(); next != queue_.end();) {
            const auto line = next++;
            if (line->logger != logger_) lost.splice(lost.end(), queue_, line);
        }
    }

    /// Of the latest session that is not gone. Nothing else is locked: it could be the last reference, and a runtime
    /// must not end in here.
    std::shared_ptr<Runtime> any_runtime() const {
        std::shared_ptr<Runtime> out;
        for (auto user = runtimes_.rbegin(); user != runtimes_.rend() && !out; ++user) out = user->runtime.lock();
        return out;
    }

    void write() {
        std::list<Entry> queue;
        std::uint64_t dropped = 0;
        {
            const std::lock_guard lock(mutex_);
            scheduled_ = false;
            queue.swap(queue_);
            dropped = std::exchange(dropped_, 0);
        }
        for (const Entry& entry : queue) entry.logger->log(entry.level, "zookeeper client: {}", entry.message);
        if (dropped != 0) queue.back().logger->warn("zookeeper client: {} lines were dropped", dropped);
    }

    std::mutex mutex_;  // guards what follows
    std::shared_ptr<spdlog::logger> logger_;
    std::vector<User> runtimes_;  // of the handles that write here
    ClientLogFilter filter_;
    std::list<Entry> queue_;
    bool scheduled_ = false;  // a Turn is under way
    std::uint64_t dropped_ = 0;
};

class Slots {
public:
    Slots() {
        for (auto& slot : slots_) slot = std::make_shared<Slot>();
    }
    static Slots& instance() {
        static constinit PerProcess<Slots> slots;
        return slots.get();
    }

    std::size_t acquire(std::shared_ptr<spdlog::logger> logger, const std::shared_ptr<Runtime>& runtime) {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i + 1 < kSlots; ++i) {
            if (users_[i].count != 0 && users_[i].logger == logger.get() && users_[i].runtime == runtime.get()) {
                slots_[i]->add(logger, runtime);
                ++users_[i].count;
                return i;
            }
        }
        std::size_t index = 0;
        while (index + 1 < kSlots && users_[index].count != 0) ++index;
        if (index + 1 == kSlots) logger = default_logger();
        slots_[index]->add(logger, runtime);
        users_[index].logger = logger.get();
        users_[index].runtime = runtime.get();
        ++users_[index].count;
        return index;
    }

    void release(std::size_t index, const Runtime* runtime) {
        Slot::Rest rest;
        const std::lock_guard lock(mutex_);
        --users_[index].count;
        slots_[index]->remove(runtime, rest);
    }

    const std::shared_ptr<Slot>& at(std::size_t index) const { return slots_[index]; }

private:
    struct User {
        const spdlog::logger* logger = nullptr;
        const Runtime* runtime = nullptr;
        std::size_t count = 0;
    };
    std::array<std::shared_ptr<Slot>, kSlots> slots_;
    std::mutex mutex_;  // guards users_
    std::array<User, kSlots> users_{};
};

template <std::size_t Index>
void take_line(const char* line) {
    // Nothing may be thrown into C. A line that finds no memory is lost.
    try {
        Slots::instance().at(Index)->take(line);
    } catch (...) {
    }
}

template <std::size_t... Indices>
constexpr std::array<ClientLogFunction, kSlots> functions(std::index_sequence<Indices...>) {
    return {&take_line<Indices>...};
}
constexpr auto kFunctions = functions(std::make_index_sequence<kSlots>());

class SlotLease final : public ClientLog {
public:
    SlotLease(std::size_t index, const Runtime* runtime) : index_(index), runtime_(runtime) {}
    ~SlotLease() override { Slots::instance().release(index_, runtime_); }
    SlotLease(const SlotLease&) = delete;
    SlotLease& operator=(const SlotLease&) = delete;
    ClientLogFunction function() const noexcept override { return kFunctions[index_]; }

private:
    const std::size_t index_;
    const Runtime* const runtime_;
};

}  // namespace

ClientLogLine parse_client_log_line(std::string_view line) {
    using Severity = ClientLogLine::Severity;
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
    constexpr std::array<std::pair<std::string_view, Severity>, 4> kMarks{{{":ZOO_ERROR@", Severity::error},
                                                                           {":ZOO_WARN@", Severity::warn},
                                                                           {":ZOO_INFO@", Severity::info},
                                                                           {":ZOO_DEBUG@", Severity::debug}}};
    for (const auto& [mark, severity] : kMarks) {
        const std::size_t at = line.find(mark);
        if (at == std::string_view::npos) continue;
        const std::size_t function = at + mark.size();
        const std::size_t function_end = line.find('@', function);
        const std::size_t message = line.find(": ", function);
        if (function_end == std::string_view::npos || message == std::string_view::npos) continue;
        return {severity, line.substr(function, function_end - function), line.substr(message + 2)};
    }
    return {Severity::error, {}, line};
}

ClientLogLevel ClientLogFilter::level(const ClientLogLine& line) {
    using Severity = ClientLogLine::Severity;
    switch (line.severity) {
        case Severity::debug: return ClientLogLevel::trace;
        case Severity::info:
            if (contains(line.message, "session establishment complete")) failures_ = 0;
            return ClientLogLevel::debug;
        case Severity::warn:
            // Both come again and again while no server answers, and say nothing that the session does not say.
            if (contains(line.message, "Delaying connection") || contains(line.message, "Exceeded deadline")) {
                return ClientLogLevel::debug;
            }
            return ClientLogLevel::warn;
        case Severity::error: break;
    }
    // The reason stands in a line of our own; this one names an address of this process for the server.
    if (contains(line.message, "in ssl connect")) return ClientLogLevel::debug;
    if (contains(line.message, "has expired")) return ClientLogLevel::warn;
    if (line.function == "handle_socket_error_msg" || contains(line.message, "zk retcode=")) {
        ++failures_;
        return (failures_ & (failures_ - 1)) == 0 ? ClientLogLevel::warn : ClientLogLevel::debug;
    }
    return ClientLogLevel::error;
}

std::shared_ptr<ClientLog> ClientLog::open(std::shared_ptr<spdlog::logger> logger, std::shared_ptr<Runtime> runtime) {
    if (!logger) logger = default_logger();
    return std::make_shared<SlotLease>(Slots::instance().acquire(std::move(logger), runtime), runtime.get());
}

}  // namespace zkrecipes::internal
