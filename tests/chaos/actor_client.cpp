#include <iostream>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/session.hpp>

#include "chaos/actor_roles.hpp"
#include "chaos/hold_set.hpp"

namespace zkrecipes::chaos {

namespace {

std::string last_component(const std::string& path) { return path.substr(path.rfind('/') + 1); }

Session make_session(const ActorOptions& options) {
    SessionOptions session;
    session.hosts = options.hosts();
    session.timeout = options.timeout();
    return Session(std::move(session));
}

void say_connected(const Session& session, Reply& reply) {
    const auto info = session.info();
    reply.say("connected " + std::to_string(info.session_id) + " " + info.server + " " +
              std::to_string(info.timeout.count()));
}

Belief belief_in(Grant grant) {
    auto shared = std::make_shared<Grant>(std::move(grant));
    return {[shared] { return shared->held(); }, [shared] { shared->release(); }, shared->lost()};
}

class ClientRole {
public:
    ClientRole(const ActorOptions& options, Board& board, Reply& reply)
        : options_(options),
          reply_(reply),
          holds_(board, options.actor(), {}),
          session_(make_session(options)),
          states_(session_.watch_state([this](SessionState state) { on_state(state); })) {}

    int run() {
        if (!session_.wait_connected(std::chrono::seconds(30))) {
            reply_.say("error not connected after 30 s");
            return 1;
        }
        std::string command;
        while (std::getline(std::cin, command) && command != "quit") {
            if (command == "acquire") {
                acquire();
            } else if (command == "release") {
                holds_.release_all();
                reply_.say("released");
            } else if (command == "freeze") {
                holds_.stop_process();
                reply_.say("resumed");
            } else if (command == "show") {
                show();
            } else {
                reply_.say("error unknown command " + command);
            }
        }
        stop_.request_stop();
        acquirers_.clear();
        holds_.release_all();
        session_.close();
        return 0;
    }

private:
    void on_state(SessionState state) {
        if (state == SessionState::connected) say_connected(session_, reply_);
        reply_.say(std::string("state ") + to_string(state));
    }

    void acquire() {
        for (int lock = options_.first_lock(); lock < options_.first_lock() + options_.locks(); ++lock) {
            ExclusiveMutex mutex(session_, options_.lock_path(lock));
            if (options_.number("async") != 0) {
                mutex.acquire_async(Deadline::never(), stop_.get_token(), [this, lock](AcquireResult result) {
                    const Stamp now = stamp_now();
                    if (!result.error) return granted(lock, now, std::move(result.value));
                    failed(lock, result.error);
                });
                continue;
            }
            acquirers_.emplace_back([this, lock, mutex = std::move(mutex)]() mutable {
                try {
                    auto grant = mutex.try_acquire_until(Deadline::never(), stop_.get_token());
                    granted(lock, stamp_now(), std::move(grant));
                } catch (...) {
                    failed(lock, std::current_exception());
                }
            });
        }
    }

    void granted(int lock, Stamp now, Grant grant) {
        if (!grant) return reply_.say("empty " + std::to_string(lock));
        const auto token = grant.token();
        const auto node = last_component(grant.node());
        holds_.add(lock, now, token, node, belief_in(std::move(grant)));
        reply_.say("granted " + std::to_string(lock));
    }

    /// For a call that hangs: what is waited for, and what the servers know of it.
    void show() {
        const SessionStats stats = session_.stats();
        reply_.say("stalled replies: " + std::to_string(stats.stalled_replies));
        for (const auto& wait : session_.waits()) {
            std::string queue;
            try {
                const auto view = inspect_lock(session_, wait.path, std::chrono::seconds(5));
                for (const auto& each : view.participants) queue += " " + each.node;
            } catch (const std::exception& exception) {
                queue = std::string(" ") + exception.what();
            }
            reply_.say(wait.path + ": " + std::to_string(wait.in_front) + " in front; its queue:" + queue);
        }
        reply_.say("shown");
    }

    void failed(int lock, const std::exception_ptr& error) {
        if (stop_.stop_requested()) return;
        try {
            std::rethrow_exception(error);
        } catch (const std::exception& exception) {
            reply_.say("error lock " + std::to_string(lock) + ": " + exception.what());
        }
    }

    const ActorOptions& options_;
    Reply& reply_;
    HoldSet holds_;
    std::stop_source stop_;
    Session session_;
    Subscription states_;
    std::vector<std::jthread> acquirers_;
};

class WorkerRole {
public:
    WorkerRole(const ActorOptions& options, Board& board, Reply& reply)
        : options_(options), board_(board), reply_(reply), holds_(board, options.actor(), hold_options()) {}

    int run() {
        Session session = make_session(options_);
        if (!session.wait_connected(std::chrono::seconds(60))) {
            reply_.say("error not connected after 60 s");
            return 1;
        }
        say_connected(session, reply_);
        std::thread([finish = finish_]() mutable {  // it may wait for input for ever; the process ends without it
            std::string command;
            while (std::getline(std::cin, command) && command != "finish" && command != "quit") {
            }
            finish.request_stop();
        })
            .detach();
        std::vector<ExclusiveMutex> mutexes;
        for (int i = 0; i < options_.locks(); ++i) {
            mutexes.emplace_back(session, options_.lock_path(options_.first_lock() + i));
        }
        try {
            int cycles = 0;
            for (int i = options_.actor(); !finish_.stop_requested(); ++i) {
                if (!cycle(mutexes, i % options_.locks())) return 1;
                if (++cycles % 10 == 0) reply_.say("progress " + std::to_string(cycles));
            }
            for (int i = 0; i < options_.locks(); ++i) {
                if (!cycle(mutexes, i)) return 1;
                ++cycles;
            }
            reply_.say("done " + std::to_string(cycles));
        } catch (const std::exception& exception) {
            reply_.say(std::string("error ") + exception.what());
            return 1;
        }
        session.close();
        return 0;
    }

private:
    static HoldSet::Options hold_options() {
        HoldSet::Options options;
        options.poll_every = std::chrono::milliseconds(3);  // there are many of us
        options.think = std::chrono::milliseconds(0);
        return options;
    }

    bool cycle(std::vector<ExclusiveMutex>& mutexes, int index) {
        const int lock = options_.first_lock() + index;
        auto grant = mutexes[static_cast<std::size_t>(index)].try_acquire_for(std::chrono::seconds(120));
        const Stamp now = stamp_now();
        if (!grant) {
            reply_.say("starved " + std::to_string(lock));
            return false;
        }
        const auto token = grant.token();
        const auto node = last_component(grant.node());
        const auto entry = holds_.add(lock, now, token, node, belief_in(std::move(grant)));
        const auto value = board_.read_counter(lock);
        std::this_thread::sleep_for(std::chrono::milliseconds(options_.number("think-ms", 3)));
        holds_.write(*entry, value + 1);
        holds_.release(entry);
        return true;
    }

    const ActorOptions& options_;
    Board& board_;
    Reply& reply_;
    HoldSet holds_;
    std::stop_source finish_;
};

}  // namespace

int run_client(const ActorOptions& options, Board& board, Reply& reply) {
    return ClientRole(options, board, reply).run();
}

int run_worker(const ActorOptions& options, Board& board, Reply& reply) {
    return WorkerRole(options, board, reply).run();
}

}  // namespace zkrecipes::chaos
