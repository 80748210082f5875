#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "chaos/actor_roles.hpp"
#include "chaos/hold_set.hpp"
#include "chaos/raw_handle.hpp"

namespace zkrecipes::chaos {

namespace {

/// Until when a client believes that its session lives, by a rule that looks reasonable and is wrong.
class NaiveLease {
public:
    NaiveLease(std::string rule, const ActorOptions& options, std::function<void(const std::string&)> say)
        : rule_(std::move(rule)),
          say_(std::move(say)),
          handle_(options.hosts(), options.timeout(), [this](int state) { on_state(state); }) {}

    ~NaiveLease() {
        reader_.request_stop();
        if (reader_.joinable()) reader_.join();
    }

    RawHandle& handle() noexcept { return handle_; }

    /// Reads, or for the two-thirds rule checks, the node of the first hold from now on, as often as the library sends
    /// its heartbeats. Its create was sent at `sent_at`.
    void start(std::string node, Stamp sent_at) {
        if (reader_.joinable()) return;
        node_ = std::move(node);
        timeout_ = from_ms(handle_.ask(&zoo_recv_timeout));
        answered_at_ = stamp_now();
        committed_sent_at_ = sent_at;
        reader_ = std::jthread([this](std::stop_token stop) {
            std::mutex mutex;
            std::condition_variable_any stopped;
            std::unique_lock lock(mutex);
            while (!stop.stop_requested()) {
                if (rule_ == "two-thirds") {
                    check();
                } else {
                    handle_.ask([this](zhandle_t* handle) {
                        return zoo_aexists(handle, node_.c_str(), 0, &NaiveLease::on_answer, this);
                    });
                }
                stopped.wait_for(lock, stop, std::chrono::nanoseconds(timeout_ / 6), [] { return false; });
            }
        });
    }

    bool held() {
        if (!fresh()) over_ = true;
        return !over_;
    }

private:
    /// One committed check on its way. The C client wants the operation and its result to live until the answer.
    struct Check {
        NaiveLease* lease = nullptr;
        Stamp sent_at = 0;
        zoo_op_t operation{};
        zoo_op_result_t result{};
    };

    bool fresh() const {
        if (rule_ == "suspended") return true;
        if (rule_ == "two-thirds") return stamp_now() < committed_sent_at_ + timeout_ * 2 / 3;
        return stamp_now() < answered_at_ + timeout_;
    }

    void check() {
        auto check = std::make_unique<Check>();
        check->lease = this;
        check->sent_at = stamp_now();
        zoo_check_op_init(&check->operation, node_.c_str(), -1);
        auto* raw = check.get();
        const int rc = handle_.ask([raw](zhandle_t* handle) {
            return zoo_amulti(handle, 1, &raw->operation, &raw->result, &NaiveLease::on_checked, raw);
        });
        if (rc == ZOK) check.release();  // on_checked has it now
    }

    static void on_checked(int rc, const void* context) {
        const std::unique_ptr<Check> check(static_cast<Check*>(const_cast<void*>(context)));
        if (rc == ZOK)
            check->lease->committed_sent_at_ = std::max(check->lease->committed_sent_at_.load(), check->sent_at);
    }

    static void on_answer(int rc, const struct Stat*, const void* context) {
        auto& self = *static_cast<NaiveLease*>(const_cast<void*>(context));
        if (rc == ZOK) self.answered_at_ = stamp_now();
    }

    void on_state(int state) {
        if (state == ZOO_EXPIRED_SESSION_STATE) over_ = true;
        if (rule_ == "suspended" && state != ZOO_CONNECTED_STATE && timeout_ != 0) over_ = true;
        say_(state == ZOO_CONNECTED_STATE ? "state connected" : "state suspended");
    }

    const std::string rule_;
    const std::function<void(const std::string&)> say_;
    std::string node_;
    std::atomic<Stamp> timeout_{0};
    std::atomic<Stamp> answered_at_{0};
    std::atomic<Stamp> committed_sent_at_{0};
    std::atomic<bool> over_{false};
    RawHandle handle_;
    std::jthread reader_;
};

std::string node_name() {
    std::random_device random;
    char text[64];
    std::snprintf(text, sizeof(text), "_c_%08x-%04x-4%03x-8%03x-%08x%04x-lock-", random(), random() & 0xffff,
                  random() & 0xfff, random() & 0xfff, random(), random() & 0xffff);
    return text;
}

class NaiveRole {
public:
    NaiveRole(const ActorOptions& options, Board& board, Reply& reply)
        : options_(options),
          reply_(reply),
          lease_(options.text("rule"), options, [&reply](const std::string& line) { reply.say(line); }),
          holds_(board, options.actor(), {}) {}

    int run() {
        if (!lease_.handle().wait_connected(std::chrono::seconds(30))) {
            reply_.say("error not connected after 30 s");
            return 1;
        }
        const auto session = lease_.handle().ask([](zhandle_t* handle) { return zoo_client_id(handle)->client_id; });
        reply_.say("connected " + std::to_string(session) + " " + options_.hosts() + " " +
                   std::to_string(lease_.handle().ask(&zoo_recv_timeout)));
        std::string command;
        while (std::getline(std::cin, command) && command != "quit") {
            if (command == "acquire") {
                acquirer_ = std::jthread([this](const std::stop_token& stop) { acquire(stop); });
            } else if (command == "release") {
                holds_.release_all();
                reply_.say("released");
            } else if (command == "freeze") {
                holds_.stop_process();
                reply_.say("resumed");
            } else {
                reply_.say("error unknown command " + command);
            }
        }
        acquirer_.request_stop();
        if (acquirer_.joinable()) acquirer_.join();
        holds_.release_all();
        return 0;
    }

private:
    struct Place {
        int lock = 0;
        std::string directory;
        std::string node;  // last component
        std::int64_t czxid = 0;
        Stamp sent_at = 0;  // of the create
    };

    // Curator's protocol without any of its difficulties: enter all queues, then look again and again who is first.
    // Asking often is the point: nobody learns sooner that a lock is free.
    void acquire(const std::stop_token& stop) {
        std::vector<Place> waiting;
        for (int lock = options_.first_lock(); lock < options_.first_lock() + options_.locks(); ++lock) {
            waiting.push_back(enter(lock));
        }
        while (!waiting.empty() && !stop.stop_requested()) {
            std::erase_if(waiting, [this](const Place& place) { return is_first(place) && grant(place); });
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }

    Place enter(int lock) {
        Place place;
        place.lock = lock;
        place.directory = options_.lock_path(lock);
        lease_.handle().make_path(place.directory);
        const std::string prefix = place.directory + "/" + node_name();
        place.sent_at = stamp_now();
        const auto made = lease_.handle().create(prefix, ZOO_EPHEMERAL | ZOO_SEQUENCE);
        if (made.rc != ZOK) reply_.say("error lock " + std::to_string(lock) + ": create: " + zerror(made.rc));
        place.node = made.path.substr(made.path.rfind('/') + 1);
        place.czxid = made.czxid;
        return place;
    }

    bool is_first(const Place& place) {
        const auto names = lease_.handle().children(place.directory);
        if (!names) return false;
        bool own = false;
        bool smaller = false;
        for (const std::string& name : *names) {
            own = own || place.node == name;
            smaller = smaller || sequence_of(name) < sequence_of(place.node);
        }
        return own && !smaller;
    }

    bool grant(const Place& place) {
        const Stamp now = stamp_now();
        const std::string path = place.directory + "/" + place.node;
        lease_.start(path, place.sent_at);
        holds_.add(place.lock, now, place.czxid, place.node,
                   {[this] { return lease_.held(); },
                    [this, path] {
                        lease_.handle().ask([&](zhandle_t* handle) {
                            return zoo_adelete(
                                handle, path.c_str(), -1, [](int, const void*) {}, nullptr);
                        });
                    },
                    {}});
        reply_.say("granted " + std::to_string(place.lock));
        return true;
    }

    const ActorOptions& options_;
    Reply& reply_;
    NaiveLease lease_;
    HoldSet holds_;
    std::jthread acquirer_;
};

}  // namespace

int run_naive(const ActorOptions& options, Board& board, Reply& reply) {
    return NaiveRole(options, board, reply).run();
}

}  // namespace zkrecipes::chaos
