#include "core/value/value_update_fsm.hpp"

#include <utility>

namespace zkrecipes::internal {
namespace {

/// ZooKeeper's "any version". A node whose data were written 2^32 - 1 times has it as its own, and then a condition
/// cannot be expressed: the servers would take it for none.
constexpr std::int32_t kAnyVersion = -1;

/// A directory that is missing again and again after it was made is not missing: its node takes no children.
constexpr int kMostDirectories = 3;

}  // namespace

// ---- steps --------------------------------------------------------------------------------------------------------

void ValueUpdateFsm::start() { follow(rule_.begin()); }

void ValueUpdateFsm::follow(const ValueUpdateRule::Step& step) {
    switch (step.then) {
        case ValueUpdateRule::Then::look: return request(Request::look);
        case ValueUpdateRule::Then::write: write_ = step.write; return send_write();
        case ValueUpdateRule::Then::unchanged: return end(How::unchanged);
        case ValueUpdateRule::Then::fail: return fail(step.error, step.detail);
    }
}

void ValueUpdateFsm::send_write() {
    const bool any = write_.version == kAnyVersion;
    if (write_.how == ValueWrite::How::set && any) {
        return fail(Errc::unsupported,
                    "the version of its data has come round to -1, which the servers take for \"any\", so that nobody "
                    "can write on a condition; nothing was written; while nobody else writes, set it once "
                    "unconditionally, and its version is 0");
    }
    if (spec_.make_directories && port_.lacks_marks()) {
        directory_ = ValueUpdatePort::Directory::of_marks;
        return request(Request::directory);
    }
    step_ = Step::writing;
    port_.write(next_ticket(), write_);
}

void ValueUpdateFsm::request(Request request) {
    request_ = request;
    if (!port_.connected()) return await_connection();
    if (request == Request::look) {
        step_ = Step::looking;
        port_.look(next_ticket(), rule_.looks_fresh());
    } else {
        step_ = Step::making_directory;
        port_.make_directory(next_ticket(), directory_);
    }
}

void ValueUpdateFsm::on_timer() { step_ == Step::pausing ? follow(next_) : RetryingFsm::on_timer(); }

// ---- answers ------------------------------------------------------------------------------------------------------

bool ValueUpdateFsm::usable(Rc rc, const char* what) {
    switch (meaning_or_failed(rc)) {
        case Meaning::done:
        case Meaning::refused: outage_.answered(); return true;
        case Meaning::failed: fail(error_of(rc), answer_in_words(what, rc) + "; nothing was written"); return false;
        case Meaning::not_done:
        case Meaning::unknown:
        case Meaning::session_over: attempt_failed(); return false;
    }
    return false;
}

void ValueUpdateFsm::on_looked(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat) {
    if (!current(ticket, Step::looking) || !usable(rc, "reading it")) return;
    follow(rule_.on_found(rc == Rc::ok ? std::optional(FoundValue{data, stat.version}) : std::nullopt));
}

void ValueUpdateFsm::on_directory(Ticket ticket, Rc rc) {
    if (!current(ticket, Step::making_directory) || !usable(rc, "making its directory")) return;
    if (rc != Rc::ok) return fail(Errc::no_parent, "its directory cannot be made; nothing was written");
    send_write();
}

void ValueUpdateFsm::on_written(Ticket ticket, WriteEnd end_of_write) {
    if (!current(ticket, Step::writing)) return;
    step_ = Step::idle;
    if (end_of_write.how == WriteEnd::How::written) {
        rule_.on_written(write_, end_of_write.version);
        return end(How::changed);
    }
    if (end_of_write.how == WriteEnd::How::nothing) return end(How::nothing);
    const Errc why = end_of_write.error->errc();
    if (why == Errc::no_parent && spec_.make_directories && directories_made_++ < kMostDirectories) {
        directory_ = end_of_write.of_mark ? ValueUpdatePort::Directory::of_marks : ValueUpdatePort::Directory::parent;
        return late_ ? end(How::nothing) : request(Request::directory);
    }
    const bool refusal = why == Errc::no_node || why == Errc::node_exists || why == Errc::bad_version;
    if (refusal && !end_of_write.of_mark) return refused(why);
    fail(*std::move(end_of_write.error));
}

void ValueUpdateFsm::refused(Errc why) {
    ValueUpdateRule::Step next = rule_.on_refused(why);
    const bool goes_on = next.then == ValueUpdateRule::Then::look || next.then == ValueUpdateRule::Then::write;
    if (goes_on && late_) return end(How::nothing);
    // A write without a condition that finds no node has met nobody.
    if (!goes_on || write_.how == ValueWrite::How::set_any) return follow(next);
    conflict(std::move(next));
}

/// The next look needs no sync. A refusal is a transaction of its own, so its answer carries a zxid later than the
/// write in conflict, and this session is never answered by a server that is behind that.
void ValueUpdateFsm::conflict(ValueUpdateRule::Step next) {
    if (spec_.once) return end(How::nothing);
    next_ = std::move(next);
    const auto delay = conflicts_.failed(
        port_.now(), port_.random(), [this](const RetryState& state) { return port_.conflict_delay(state, locked_); });
    if (delay) {
        step_ = Step::pausing;
        return port_.start_timer(*delay);
    }
    if (locked_ || !port_.has_lock()) {
        return fail(Errc::bad_version, "others have changed it between our look and our write each time; " +
                                           conflicts_.gave_up() +
                                           "; nothing was written; allow more attempts, or give a lock");
    }
    step_ = Step::locking;
    port_.lock(next_ticket());
}

void ValueUpdateFsm::on_locked(Ticket ticket, LockEnd end_of_lock) {
    if (!current(ticket, Step::locking)) return;
    if (end_of_lock.error) return fail(*std::move(end_of_lock.error));
    if (!end_of_lock.locked) return end(How::nothing);
    locked_ = true;
    if (late_) return end(How::nothing);
    conflicts_.over();
    follow(next_);
}

// ---- the end ------------------------------------------------------------------------------------------------------

void ValueUpdateFsm::deadline() {
    // A write or a lock under way has the same deadline, and knows what has become of it.
    late_ = true;
    if (step_ != Step::writing && step_ != Step::locking) end(How::nothing);
}

void ValueUpdateFsm::stop() {
    step_ == Step::writing || step_ == Step::locking ? port_.stop_waiting() : end(How::nothing);
}

void ValueUpdateFsm::on_closed(Errc why, std::string detail) {
    // As with the deadline: they are told, too.
    if (step_ != Step::writing && step_ != Step::locking) fail(why, std::move(detail));
}

void ValueUpdateFsm::end(How how) {
    ValueUpdateEnd answer;
    answer.how = how;
    leave(std::move(answer));
}

void ValueUpdateFsm::fail(Errc error, std::string detail) {
    ValueUpdateEnd answer;
    answer.how = How::failed;
    answer.error = error;
    answer.detail = std::move(detail);
    leave(std::move(answer));
}

void ValueUpdateFsm::fail(Error error) {
    ValueUpdateEnd answer;
    answer.how = How::failed;
    answer.error = error.errc();
    answer.ready.emplace(std::move(error));
    leave(std::move(answer));
}

void ValueUpdateFsm::leave(ValueUpdateEnd answer) {
    if (is_over()) return;
    end_ = std::move(answer);
    if (std::exchange(locked_, false)) port_.unlock();
    RetryingFsm::leave(Ended::failed);  // or not: `end_` says it
}

}  // namespace zkrecipes::internal
