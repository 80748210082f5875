#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/operation/retrying_fsm.hpp"

namespace zkrecipes::internal {

/// What is known of the own nodes, which one request makes: all of them or none.
enum class Known : std::uint8_t { none, unknown, created };

/// What is wrong with the name that the server gave to an own node.
struct NameProblem {
    Errc error{};
    std::string detail;
};
/// Empty: it is in order. `many`: more than half of the numbers of its directory are used up.
std::optional<NameProblem> check_name(const std::string& node, const std::string& identity, const std::string& base,
                                      bool& many);

/// What AcquireFsm and MultiAcquireFsm have in common: they retry, and what they know of their own nodes belongs to one
/// session incarnation and is forgotten with it. From it alone follows what has to be done on each (re)connect:
///   none      create, with exists(directory) right behind it
///   unknown   sync, list, find by identity, compare the owner with the session: adopt, or create again
///   created   list
/// A connection that breaks at any step costs one attempt of the retry policy and leads back to this table, unless what
/// is waited for is told after the break, too (watch_goes_on).
template <class Port, class Steps>
class QueueingFsm : public RetryingFsm<Port, Steps> {
    using Base = RetryingFsm<Port, Steps>;

public:
    void on_room() override {
        if (step_ == Step::awaiting_room) this->resume();
    }
    void on_suspended() override { step_ == Step::awaiting_room ? this->attempt_failed() : Base::on_suspended(); }
    void on_session_lost() override {
        switch (step_) {
            case Step::finished:
            case Step::idle:
            case Step::awaiting_session: return;
            case Step::leaving: return this->finish();  // what may have been created ends with the session
            case Step::backing_off: return this->forget_nodes();
            default: break;
        }
        if (known_ != Known::none) port_.note("session lost while waiting: going to the tail of the queue");
        this->forget_nodes();
        step_ = Step::idle;  // no answer is of interest any more, not even that of a create
        this->attempt_failed();
    }

protected:
    using Base::Base;
    using Base::port_;
    using Base::step_;
    using typename Base::Step;

    // RetryingFsm
    void resume() override {
        // Knowledge of a node is worth nothing in another session: the servers delete, or have deleted, the node (H3).
        if (!same_session()) this->forget_nodes();
        met_others_ = false;
        go_on();
    }
    void forget_attempt() override { fast_grant_ = checked_ = false; }
    void clean_up() override {
        if (same_session()) give_up_nodes();
    }

    /// Connected, and the session is the one that the knowledge is about.
    virtual void go_on() = 0;
    virtual void give_up_nodes() = 0;
    bool others_in_the_way() const override {
        return this->is_idle() || (met_others_ && step_ != Step::backing_off && step_ != Step::awaiting_session);
    }

    /// Before a node is made. True: it is not the time for it, on_room() goes on.
    bool waits_for_room() {
        if (!port_.many_given_up()) return false;
        this->next_ticket();
        step_ = Step::awaiting_room;
        met_others_ = false;
        return true;
    }

    bool same_session() const { return node_incarnation_ == port_.incarnation(); }

    Known known_ = Known::none;
    bool fast_grant_ = false;  // nothing but round trips since the create: its commit may be lease enough
    bool checked_ = false;     // the own nodes were checked right now, and are there
    bool met_others_ = false;  // this attempt has found others in the way
    std::uint16_t directory_attempts_ = 0;
    std::uint64_t node_incarnation_ = 0;  // whose session the knowledge is about
    std::int64_t node_session_ = 0;
    std::int64_t czxid_ = 0;  // 0: not known
    std::string identity_;    // "_c_<uuid>-" of the present create; "": none yet
};

}  // namespace zkrecipes::internal
