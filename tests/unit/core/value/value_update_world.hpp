#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/value/big_endian.hpp"
#include "core/value/value_update_fsm.hpp"
#include "core/value/value_update_rules.hpp"
#include "unit/core/operation/operation_world.hpp"

namespace zkrecipes::internal {

using ChangeHow = ValueUpdateEnd::How;
using WriteHow = ValueWrite::How;
constexpr NumberFormat kEight{8};
constexpr NumberFormat kFour{4};

enum class ChangeEvent {
    none,
    lost,           // the connection breaks, the request is not executed
    lost_after,     // it is executed, and the answer is lost
    not_connected,  // a write that waits for a server until it is stopped or its deadline passes
    overtaken,      // somebody else adds 100 right before
    removed,        // somebody deletes the node right before
    made,           // somebody makes it right before, where it is missing
    parents_gone,   // the directories on the way are missing
    forbidden,      // the access list does not allow it
    stopped,
    timed_out,
    closed
};
constexpr ChangeEvent kChangeEvents[] = {ChangeEvent::lost,         ChangeEvent::lost_after, ChangeEvent::not_connected,
                                         ChangeEvent::overtaken,    ChangeEvent::removed,    ChangeEvent::made,
                                         ChangeEvent::parents_gone, ChangeEvent::forbidden,  ChangeEvent::stopped,
                                         ChangeEvent::timed_out,    ChangeEvent::closed};

/// A server with one node, and commits, a lock and a connection that do what they are told.
class ValueUpdateWorld : public ValueUpdatePort, public OperationWorld {
public:
    explicit ValueUpdateWorld(ValueUpdateRule& rule, bool with_lock = false, bool once = false, bool directories = true)
        : lock_there(with_lock), fsm(*this, rule, {directories, once}) {
        attempts_allowed = 5;
    }

    // ---- the node, as others see it ----
    void put(std::int64_t number) {
        version = data ? version + 1 : 0;
        data = kEight.write(number);
        history.push_back(number);
    }
    std::int64_t number() const { return data ? kEight.read(*data).value_or(0) : 0; }

    // ---- running ----
    bool pump() {
        if (pending) {
            const auto request = *std::exchange(pending, nullptr);
            const auto plan = plans.find(requests++);
            request(plan == plans.end() ? ChangeEvent::none : plan->second);
            return true;
        }
        if (!is_connected && !is_closed) {
            is_connected = true;
            fsm.on_connected();
            return true;
        }
        if (timer) {
            timer = false;
            fsm.on_timer();
            return true;
        }
        return false;
    }
    void run() {
        fsm.start();
        run_on();
    }
    void run_on() {
        for (int i = 0; i < 300 && pump(); ++i) {
        }
    }

    // ---- ValueUpdatePort ----
    std::optional<std::chrono::milliseconds> conflict_delay(const RetryState& state, bool under_lock) override {
        EXPECT_EQ(under_lock, locked);
        if (under_lock) failures_under_lock = state.failures;
        if (!under_lock && state.failures > conflicts_allowed) return std::nullopt;
        return std::chrono::milliseconds(1);
    }
    bool has_lock() const override { return lock_there; }
    bool lacks_marks() const override { return wants_marks; }

    void look(Ticket ticket, bool fresh) override {
        EXPECT_TRUE(is_connected);
        fresh_looks += fresh ? 1 : 0;
        ++looks;
        send([this, ticket](ChangeEvent event) {
            if (!common(event)) return;
            if (event == ChangeEvent::lost || event == ChangeEvent::lost_after || event == ChangeEvent::not_connected) {
                is_connected = false;
                return fsm.on_looked(ticket, Rc::connection_loss, "", {});
            }
            if (event == ChangeEvent::forbidden) return fsm.on_looked(ticket, Rc::no_auth, "", {});
            NodeStat stat;
            stat.version = version;
            fsm.on_looked(ticket, data ? Rc::ok : Rc::no_node, data.value_or(""), stat);
        });
    }
    void write(Ticket ticket, const ValueWrite& write) override {
        ++writes;
        writing = true;
        written = write;
        if (answers_at_once) {
            writing = false;
            return fsm.on_written(ticket, apply(write));
        }
        send([this, ticket, write](ChangeEvent event) {
            if (event == ChangeEvent::closed) {
                is_closed = true;
                fsm.on_closed(Errc::closed, "");  // is told first, and leaves it to the commit
                apply(write);
                return finish_write(ticket, failed(Errc::outcome_unknown));
            }
            if (!common(event)) return;
            switch (event) {
                case ChangeEvent::lost: return finish_write(ticket, failed(Errc::outcome_unknown));
                case ChangeEvent::lost_after: apply(write); return finish_write(ticket, failed(Errc::outcome_unknown));
                case ChangeEvent::not_connected: return finish_write(ticket, {});
                case ChangeEvent::forbidden: return finish_write(ticket, failed(Errc::no_permission));
                default: return finish_write(ticket, apply(write));
            }
        });
        current_write = ticket;
    }
    void make_directory(Ticket ticket, Directory which) override {
        made_directories.push_back(which);
        send([this, ticket](ChangeEvent event) {
            if (!common(event)) return;
            if (event == ChangeEvent::lost || event == ChangeEvent::not_connected) {
                is_connected = false;
                return fsm.on_directory(ticket, Rc::connection_loss);
            }
            if (event == ChangeEvent::forbidden) return fsm.on_directory(ticket, Rc::no_auth);
            has_parents = true;
            if (made_directories.back() == Directory::of_marks) wants_marks = false;
            if (event == ChangeEvent::lost_after) {
                is_connected = false;
                return fsm.on_directory(ticket, Rc::connection_loss);
            }
            fsm.on_directory(ticket, Rc::ok);
        });
    }
    void lock(Ticket ticket) override {
        ++locks;
        locking = true;
        send([this, ticket](ChangeEvent event) {
            if (event == ChangeEvent::closed) {
                is_closed = true;
                fsm.on_closed(Errc::closed, "");
                locking = false;
                return fsm.on_locked(ticket, {false, Error(Errc::closed, "lock", "")});
            }
            if (!common(event)) return;
            locking = false;
            if (event == ChangeEvent::forbidden) {
                return fsm.on_locked(ticket, {false, Error(Errc::no_permission, "lock", "")});
            }
            if (event == ChangeEvent::not_connected) return fsm.on_locked(ticket, {});
            locked = true;
            fsm.on_locked(ticket, {true, {}});
        });
        current_lock = ticket;
    }
    void unlock() override {
        EXPECT_TRUE(std::exchange(locked, false));
        ++unlocks;
    }
    void stop_waiting() override { end_wait(); }
    void answer(ValueUpdateEnd how) override {
        ++answers;
        end = std::move(how);
    }

    std::map<int, ChangeEvent> plans;
    std::optional<std::string> data;
    std::int32_t version = 0;
    bool has_parents = true;
    std::vector<std::int64_t> history{0};  // every number that it ever was
    bool answers_at_once = false, wants_marks = false;
    bool lock_there, locked = false, writing = false, locking = false;
    int failures_under_lock = 0;  // that the policy was told of last
    int conflicts_allowed = 3;
    int requests = 0, looks = 0, fresh_looks = 0, writes = 0, locks = 0, unlocks = 0, applied = 0;
    std::vector<Directory> made_directories;
    std::optional<ValueWrite> written;
    std::optional<ValueUpdateEnd> end;
    ValueUpdateFsm fsm;

private:
    using Execute = std::function<void(ChangeEvent)>;

    void send(Execute execute) {
        EXPECT_FALSE(pending);
        pending = std::make_unique<Execute>(std::move(execute));
    }
    /// What others do, and what ends the call. False: nothing is to be answered any more.
    bool common(ChangeEvent event) {
        switch (event) {
            case ChangeEvent::overtaken: put(number() + 100); return true;
            case ChangeEvent::removed:
                data.reset();
                history.push_back(0);
                return true;
            case ChangeEvent::made:
                if (!data) put(7);
                return true;
            case ChangeEvent::parents_gone:
                if (!data) has_parents = false;
                return true;
            case ChangeEvent::stopped: fsm.stop(); return answers == 0;
            case ChangeEvent::timed_out:
                fsm.deadline();
                end_wait();  // what was under way has the same deadline
                return answers == 0;
            case ChangeEvent::closed:
                is_closed = true;
                fsm.on_closed(Errc::closed, "");
                return answers == 0;
            default: return true;
        }
    }
    /// The commit is told to end, with its request on the way: nobody knows, and it is executed.
    void end_wait() {
        if (std::exchange(writing, false)) {
            apply(*written);
            fsm.on_written(current_write, failed(Errc::outcome_unknown));
        } else if (std::exchange(locking, false)) {
            fsm.on_locked(current_lock, {});
        }
    }
    void finish_write(Ticket ticket, WriteEnd how) {
        writing = false;
        fsm.on_written(ticket, std::move(how));
    }
    static WriteEnd failed(Errc errc) {
        WriteEnd how;
        how.how = WriteEnd::How::failed;
        how.error.emplace(errc, "write", "/value");
        return how;
    }
    /// As ZooKeeper does it.
    WriteEnd apply(const ValueWrite& write) {
        if (write.how == WriteHow::create) {
            if (data) return failed(Errc::node_exists);
            if (!has_parents) return failed(Errc::no_parent);
            version = 0;
        } else {
            if (!data) return failed(Errc::no_node);
            if (write.how == WriteHow::set && write.version != -1 && write.version != version) {
                return failed(Errc::bad_version);
            }
            ++version;
        }
        data = write.data;
        history.push_back(number());
        ++applied;
        WriteEnd how;
        how.how = WriteEnd::How::written;
        how.version = version;
        return how;
    }

    std::unique_ptr<Execute> pending;
    Ticket current_write = 0, current_lock = 0;
};

}  // namespace zkrecipes::internal
