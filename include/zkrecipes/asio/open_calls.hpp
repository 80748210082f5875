#pragma once

#include <boost/asio/execution_context.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <utility>
#include <zkrecipes/export.hpp>

/// How the functions of zkrecipes/asio.hpp are made of the asynchronous calls of the library. Not for programs.
namespace zkrecipes::asio_calls {

namespace asio = boost::asio;

/// A call that waits for its result, in a list of all calls whose handlers belong to one event loop.
struct OpenCall {
    virtual ~OpenCall() = default;
    virtual void destroy() noexcept = 0;
    std::stop_source stop;
    OpenCall* previous = nullptr;
    OpenCall* next = nullptr;
};

/// The open calls of an event loop. Callbacks keep this object, and it outlives the loop. So a result that comes after
/// the end of the loop finds the list closed, and is dropped.
class OpenCalls {
public:
    /// False: the loop is being destroyed.
    bool add(OpenCall& call) {
        const std::lock_guard lock(mutex_);
        if (closed_) return false;
        call.next = first_;
        if (first_ != nullptr) first_->previous = &call;
        first_ = &call;
        return true;
    }
    /// Runs `post`, which takes the call over, unless the loop is gone. The loop is not destroyed meanwhile.
    template <class Post>
    void complete(OpenCall& call, Post post) {
        {
            const std::lock_guard lock(mutex_);
            if (closed_) return;  // `call` is gone, too
            (call.previous != nullptr ? call.previous->next : first_) = call.next;
            if (call.next != nullptr) call.next->previous = call.previous;
            ++posting_;
        }
        struct Posted {
            OpenCalls& calls;
            ~Posted() {
                const std::lock_guard lock(calls.mutex_);
                if (--calls.posting_ == 0) calls.none_posting_.notify_all();
            }
        };
        const Posted posted{*this};
        post();
    }
    /// The loop is being destroyed: stops all calls and destroys their handlers.
    void close() {
        OpenCall* call = nullptr;
        {
            std::unique_lock lock(mutex_);
            closed_ = true;
            call = std::exchange(first_, nullptr);
            none_posting_.wait(lock, [this] { return posting_ == 0; });
        }
        while (call != nullptr) {
            OpenCall& gone = *std::exchange(call, call->next);
            gone.stop.request_stop();
            gone.destroy();
        }
    }

private:
    std::mutex mutex_;  // guards all of this; nothing is called with it held
    std::condition_variable none_posting_;
    OpenCall* first_ = nullptr;
    int posting_ = 0;
    bool closed_ = false;
};

/// Is told when the event loop is destroyed.
class LoopService final : public asio::execution_context::service {
public:
    static inline asio::execution_context::id id;
    explicit LoopService(asio::execution_context& loop) : service(loop) {}
    const std::shared_ptr<OpenCalls> calls = std::make_shared<OpenCalls>();

private:
    void shutdown() override { calls->close(); }
};

}  // namespace zkrecipes::asio_calls
