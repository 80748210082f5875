#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/operation/types.hpp"
#include "support/fault_table.hpp"
#include "unit/core/operation/operation_world.hpp"

namespace zkrecipes::internal {

/// What the worlds of one queue and of several have in common: one client whose requests are executed in their order,
/// and a connection that breaks when told to. Just enough of ZooKeeper to decide for every order of events whether the
/// protocol ends well. No clock, no threads: the test pumps.
class QueueWorld : public OperationWorld {
public:
    static constexpr std::int64_t kOther = 77;  // session of everybody else

    struct Node {
        std::int64_t owner = 0;
        std::int64_t czxid = 0;
    };

    QueueWorld() = default;
    QueueWorld(const QueueWorld&) = delete;
    QueueWorld& operator=(const QueueWorld&) = delete;

    // ---- the connection ----
    void suspend() {
        if (!is_connected) return;
        is_connected = false;
        if (suspended_first) machine().on_suspended();
        drop_pending(Rc::connection_loss);
        if (!suspended_first) machine().on_suspended();
    }
    void reconnect() {
        if (is_connected || is_closed) return;
        is_connected = true;
        machine().on_connected();
        fire_missed_watches();
    }
    void expire() {
        is_connected = false;
        const std::int64_t old = session;
        ++session;
        if (suspended_first) lose();
        drop_pending(Rc::session_expired);
        if (!suspended_first) lose();
        if (!lingering) delete_nodes_of(old);  // else the servers have not noticed yet
    }
    void close() {
        is_closed = true;
        is_connected = false;
        drop_pending(Rc::closed);
        machine().on_closed(Errc::closed, "closed");
        delete_nodes_of(session);
    }

    // ---- running ----
    /// One event: a request, else the reconnect, else the timer, else what the test does next. False: nothing left.
    bool pump() {
        if (pending.empty() && waiting_list) send(std::exchange(waiting_list, nullptr));
        if (!pending.empty()) {
            const int index = executed++;
            const Fault fault = fault_at(plans, index);
            auto request = std::move(pending.front());
            pending.pop_front();
            play(std::move(request), fault);
            return true;
        }
        if (!is_connected && !is_closed) {
            if (stay_away > 0) {
                --stay_away;
            } else {
                reconnect();
                return true;
            }
        }
        if (is_connected && clean_between()) return true;
        if (timer) {
            timer = false;
            clock += last_delay;
            machine().on_timer();
            return true;
        }
        if (script.empty()) return false;
        auto next = std::move(script.front());
        script.pop_front();
        next();
        return true;
    }
    /// Until nothing happens any more; then the reaper does its work.
    void run() {
        for (int i = 0; i < 10'000 && pump(); ++i) {
        }
        if (!is_closed) flush_reaper();
    }

    // ---- state, open to the tests ----
    std::int64_t zxid = 100;
    bool suspended_first = true;  // what comes first when the connection breaks: the news, or the answers
    bool lists_wait = false;      // each is sent behind the request that follows it: Requests::list
    bool read_refused = false;    // once: a read is not sent, and answered before what was sent in front of it
    bool lingering = false;       // nodes of an expired session stay for a while
    bool room = true, watch_room = true, slow_lease = false, lease_fresh = false;
    int reap_directory = 0;
    std::optional<Rc> create_answer, list_answer;
    std::function<void()> before_watch;
    std::deque<std::function<void()>> script;
    PlannedFaults plans;
    std::vector<std::string> trace, watches_asked, reaped_identities;
    int created = 0, writes = 0, notes = 0, warnings = 0;
    bool others_came = false;
    std::optional<Ended> ended;  // none yet
    Errc errc{};
    std::string text;

protected:
    using Request = std::function<void(bool executed, Rc rc)>;

    virtual OperationFsm& machine() = 0;
    virtual void delete_nodes_of(std::int64_t owner) = 0;
    virtual void fire_missed_watches() = 0;  // the client sets its watches again, and a node that is gone fires at once
    virtual void forget_watches() = 0;
    virtual void flush_reaper() = 0;
    virtual bool clean_between() { return false; }  // false: there was nothing to do

    void send(Request request) {
        pending.push_back(std::move(request));
        if (waiting_list) pending.push_back(std::exchange(waiting_list, nullptr));
    }
    void send_read(Request request) {
        if (!std::exchange(read_refused, false)) return send(std::move(request));
        pending.push_front([request](bool, Rc rc) { request(false, rc == Rc::ok ? Rc::not_connected : rc); });
    }
    void send_list(Request request) {
        read_refused || !lists_wait ? send_read(std::move(request)) : void(waiting_list = std::move(request));
    }

private:
    void lose() {
        lease_fresh = false;
        forget_watches();
        machine().on_session_lost();
    }
    void play(Request request, Fault fault) {
        switch (fault) {
            case Fault::none: return request(true, Rc::ok);
            case Fault::lost_before:
            case Fault::lost_after: return break_connection(std::move(request), fault == Fault::lost_after, false);
            case Fault::expired_before:
            case Fault::expired_after: return break_connection(std::move(request), fault == Fault::expired_after, true);
            case Fault::stopped: machine().stop(); return request(true, Rc::ok);
            case Fault::timed_out: machine().deadline(); return request(true, Rc::ok);
            case Fault::closed: pending.push_front(std::move(request)); return close();
        }
    }
    void break_connection(Request request, bool run, bool with_session) {
        if (with_session && run) {
            request(true, Rc::connection_loss);
        } else {
            pending.push_front([request, run](bool, Rc rc) { request(run, rc); });
        }
        with_session ? expire() : suspend();
    }
    void drop_pending(Rc rc) {
        if (waiting_list) send(std::exchange(waiting_list, nullptr));
        auto dropped = std::move(pending);
        pending.clear();
        for (auto& request : dropped) request(false, rc);
    }

    std::deque<Request> pending;
    Request waiting_list;
};

}  // namespace zkrecipes::internal
