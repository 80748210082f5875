#include "core/acquire/lock_delay_fsm.hpp"

#include <utility>

#include "core/operation/json.hpp"

namespace zkrecipes::internal {

std::string write_holder_mark(const HolderMark& mark) {
    return "{\"v\":1,\"token\":" + std::to_string(mark.token) + ",\"held\":" + (mark.held ? "1" : "0") + "}";
}

std::optional<HolderMark> read_holder_mark(std::string_view data) {
    if (data.empty()) return HolderMark{};
    const auto object = parse_json_object(data);
    if (!object) return std::nullopt;
    const std::int64_t token = integer_member(*object, "token").value_or(0);
    const std::int64_t held = integer_member(*object, "held").value_or(-1);
    if (token <= 0 || held < 0 || held > 1) return std::nullopt;
    return HolderMark{token, held == 1};
}

LockDelayFsm::LockDelayFsm(LockDelayPort& port, std::chrono::milliseconds delay, Patience patience)
    : RetryingFsm(port, patience), delay_(delay) {}

void LockDelayFsm::queue_up() {
    own_ = {};
    step_ = Step::queueing;
    port_.enter_queue();
}

void LockDelayFsm::on_not_acquired(Ended how) { leave(how); }

void LockDelayFsm::on_acquired(std::int64_t token, bool met_others) {
    own_ = {token, true};
    met_others_ = met_others;
    waited_for_ = 0;
    marked_ = false;
    outage_ = {};
    step_ = Step::idle;
    late_ ? RetryingFsm::deadline() : resume();
}

/// Also where no server can be asked: whether the hold is lost, our own clock tells.
void LockDelayFsm::resume() {
    if (!port_.held()) return lose();
    if (!port_.connected()) return attempt_failed();
    step_ = Step::reading;
    port_.read(next_ticket());
}

void LockDelayFsm::on_read(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat) {
    if (!current(ticket, Step::reading)) return;
    if (rc == Rc::no_node) return lose(Ended::busy);  // the directory is gone, and our node with it
    if (meaning(rc) != Meaning::done) return handle_error(rc, "get");
    outage_.answered();
    const auto last = read_holder_mark(data);
    if (!last) {
        return fail(
            Errc::bad_data,
            "the data of the lock directory do not name the last holder; a lock with a delay needs them for itself, "
            "so choose another directory");
    }
    version_ = stat.version;
    if (*last == own_ && marked_) return port_.held() ? leave(Ended::granted) : lose();
    const bool vanished = last->held && last->token != own_.token && last->token != waited_for_;
    if (!vanished) return send_mark();
    if (once()) return leave(Ended::busy);
    waited_for_ = last->token;
    met_others_ = true;
    step_ = Step::delaying;
    port_.note_delay();
    port_.start_timer(delay_);
}

void LockDelayFsm::send_mark() {
    if (!port_.held()) return lose();
    if (!port_.connected()) return attempt_failed();
    step_ = Step::marking;
    port_.mark(next_ticket(), write_holder_mark(own_), version_);
}

void LockDelayFsm::on_marked(Ticket ticket, Rc rc, std::size_t refused_at) {
    if (!current(ticket, Step::marking)) return;
    step_ = Step::idle;
    marked_ = marked_ || meaning(rc) == Meaning::done || meaning(rc) == Meaning::unknown;
    if (rc == Rc::ok) return port_.held() ? leave(Ended::granted) : lose();
    if (meaning(rc) == Meaning::refused && refused_at == 0) return lose(Ended::busy);  // the own node is gone
    // Somebody has written in between, or the directory was made anew.
    if (rc == Rc::bad_version || rc == Rc::no_node) return resume();
    handle_error(rc, "set");
}

void LockDelayFsm::on_timer() {
    if (step_ == Step::backing_off) return resume();
    if (step_ == Step::delaying) send_mark();
}

// While the queue has not answered yet, it has the same deadline and is told the same of the session.

void LockDelayFsm::deadline() { step_ == Step::queueing ? void(late_ = true) : RetryingFsm::deadline(); }

void LockDelayFsm::stop() { step_ == Step::queueing&& port_.in_queue() ? port_.leave_queue() : RetryingFsm::stop(); }

void LockDelayFsm::on_closed(Errc why, std::string detail) {
    // In the step `queueing` without a place in the queue, enter_queue() has thrown.
    if (step_ == Step::queueing && port_.in_queue()) return;
    if (!is_over()) fail(why, std::move(detail));
}

void LockDelayFsm::on_session_lost() {
    // A request under way is answered; a step that only waits for time has to be told.
    if (step_ == Step::delaying || step_ == Step::backing_off) lose();
}

void LockDelayFsm::handle_error(Rc rc, const std::string& what) {
    RetryingFsm::handle_error(rc, what + " of the lock directory");
}

/// `as_try`: how a try ends.
void LockDelayFsm::lose(Ended as_try) {
    if (step_ == Step::finished) return;
    if (once()) return leave(as_try);
    port_.stop_timer();
    port_.give_back(false);
    queue_up();
}

bool LockDelayFsm::others_in_the_way() const { return step_ == Step::queueing ? port_.queue_is_busy() : met_others_; }

void LockDelayFsm::clean_up() {
    const bool marked = marked_ || step_ == Step::marking;
    if (own_.held) port_.give_back(marked);
}

void LockDelayFsm::answer(Ended how, Errc error, std::string detail) { port_.answer(how, error, std::move(detail)); }

}  // namespace zkrecipes::internal
