#pragma once
// Traces: one span for each wait and one for each hold of a session's locks. docs/tracing.md explains it.
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include <zkrecipes/session_events.hpp>

namespace lock_spans {

struct LockSpan {
    std::string name;  ///< "wait ExclusiveMutex" or "hold ExclusiveMutex"
    std::chrono::system_clock::time_point start;
    std::chrono::system_clock::time_point end;
    std::string path;
    std::string mode;
    std::string outcome;                ///< "acquired", "busy", …, "released", or why the hold was lost
    bool is_error = false;              ///< the call failed, or the hold was lost
    zkrecipes::FencingToken token = 0;  ///< 0: nothing was acquired
    std::uint64_t acquire = 0;          ///< the same for a wait and for the hold that it led to
};

// [adapter]
/// Gives each span to a function when the span has ended, on the session's notifier thread. Set it as
/// SessionOptions::events. The function must not block.
class LockSpans : public zkrecipes::SessionEvents {
public:
    explicit LockSpans(std::function<void(const LockSpan&)> sink) : sink_(std::move(sink)) {}

    void on_acquired(const zkrecipes::EventSubject& subject, zkrecipes::FencingToken token,
                     std::chrono::nanoseconds waited) override {
        end("wait ", subject, waited, "acquired", false, token);
    }
    void on_missed(const zkrecipes::EventSubject& subject, zkrecipes::Missed why,
                   std::chrono::nanoseconds waited) override {
        end("wait ", subject, waited, zkrecipes::to_string(why), false);
    }
    void on_failed(const zkrecipes::EventSubject& subject, const zkrecipes::Error& error,
                   std::chrono::nanoseconds waited) override {
        end("wait ", subject, waited, error.what(), true);
    }
    void on_released(const zkrecipes::EventSubject& subject, zkrecipes::FencingToken token,
                     std::chrono::nanoseconds held_for) override {
        end("hold ", subject, held_for, "released", false, token);
    }
    void on_lost(const zkrecipes::EventSubject& subject, zkrecipes::FencingToken token, zkrecipes::LossReason reason,
                 std::chrono::nanoseconds held_for) override {
        end("hold ", subject, held_for, zkrecipes::to_string(reason), true, token);
    }

private:
    /// An event is the end of a span, and says how long the span was. So nothing has to be remembered.
    void end(const char* what, const zkrecipes::EventSubject& subject, std::chrono::nanoseconds length,
             const char* outcome, bool is_error, zkrecipes::FencingToken token = 0) {
        const auto start = subject.at - std::chrono::duration_cast<std::chrono::system_clock::duration>(length);
        sink_({what + subject.recipe, start, subject.at, subject.path, subject.mode, outcome, is_error, token,
               subject.id});
    }

    std::function<void(const LockSpan&)> sink_;
};
// [/adapter]

}  // namespace lock_spans
