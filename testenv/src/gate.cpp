#include <algorithm>
#include <zkrecipes/testenv/gate.hpp>
#include <zkrecipes/testenv/sessions.hpp>

#include "gate_connection.hpp"
#include "gate_core.hpp"

namespace zkrecipes::testenv {

using internal::FaultState;
using internal::GateConnection;
using std::chrono::milliseconds;

Match Match::op(Opcode opcode) {
    Match match;
    match.conditions_.emplace_back([opcode](const Record& request) { return request.opcode == opcode; });
    return match;
}

Match Match::create() {
    const auto creates = [](Opcode opcode) {
        return opcode == Opcode::create || opcode == Opcode::create2 || opcode == Opcode::create_container ||
               opcode == Opcode::create_ttl;
    };
    Match match;
    match.conditions_.emplace_back([creates](const Record& request) {
        return creates(request.opcode) || std::any_of(request.parts.begin(), request.parts.end(),
                                                      [&](const SubRequest& sub) { return creates(sub.opcode); });
    });
    return match;
}
Match& Match::path(std::string part) {
    conditions_.emplace_back([part = std::move(part)](const Record& request) {
        return request.path.find(part) != std::string::npos ||
               std::any_of(request.parts.begin(), request.parts.end(),
                           [&](const SubRequest& sub) { return sub.path.find(part) != std::string::npos; });
    });
    return *this;
}

Match& Match::path_is(std::string whole) {
    conditions_.emplace_back([whole = std::move(whole)](const Record& request) {
        return request.path == whole || std::any_of(request.parts.begin(), request.parts.end(),
                                                    [&](const SubRequest& sub) { return sub.path == whole; });
    });
    return *this;
}

Match& Match::session(std::int64_t session_id) {
    conditions_.emplace_back([session_id](const Record& request) { return request.session == session_id; });
    return *this;
}

Match& Match::nth(int n) {
    if (n < 1) {
        throw Error("Match::nth counts from 1");
    }
    nth_ = n;
    return *this;
}

Match& Match::where(std::function<bool(const Record&)> predicate) {
    conditions_.push_back(std::move(predicate));
    return *this;
}

bool Match::fits(const Record& request) const {
    return std::all_of(conditions_.begin(), conditions_.end(),
                       [&](const auto& condition) { return condition(request); });
}

bool Fault::reached() const {
    const std::lock_guard lock(state_->mutex);
    return state_->reached;
}

bool Fault::wait_reached(milliseconds within) const {
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_for(lock, within, [&] { return state_->reached; });
}

void Fault::release() const {
    const std::lock_guard lock(state_->loop->mutex());
    if (const auto gate = state_->gate.lock(); gate && state_->held == FaultState::Held::yes) {
        state_->held = FaultState::Held::released;
        gate->settle_all();
    }
}

void Fault::drop() const {
    const std::lock_guard lock(state_->loop->mutex());
    if (const auto gate = state_->gate.lock(); gate && state_->held == FaultState::Held::yes) {
        state_->held = FaultState::Held::dropped;
        gate->settle_all();
    }
}

void Fault::cancel() const {
    const std::lock_guard lock(state_->loop->mutex());
    if (const auto gate = state_->gate.lock()) {
        std::erase(gate->faults, state_);
    }
}

Record Fault::request() const {
    const std::lock_guard lock(state_->loop->mutex());
    return state_->request;
}

Gate::Gate(const Endpoint& target, const GateOptions& options)
    : core_(std::make_shared<internal::GateCore>(internal::Loop::shared(), target, options)) {
    core_->open();
}

Gate::Gate(Gate&&) noexcept = default;

Gate& Gate::operator=(Gate&& other) noexcept {
    if (this != &other) {
        if (core_) {
            core_->close();
        }
        core_ = std::move(other.core_);
    }
    return *this;
}

Gate::~Gate() {
    if (core_) {
        core_->close();
    }
}

const Endpoint& Gate::endpoint() const { return core_->endpoint; }

void Gate::pass() {
    const std::lock_guard lock(core_->loop->mutex());
    core_->pass();
}

void Gate::blackhole(Direction direction) {
    const std::lock_guard lock(core_->loop->mutex());
    core_->hole_to_server = core_->hole_to_server || direction != Direction::to_client;
    core_->hole_to_client = core_->hole_to_client || direction != Direction::to_server;
    core_->settle_all();
}

void Gate::reset_all() {
    const std::lock_guard lock(core_->loop->mutex());
    core_->for_each([](GateConnection& connection) { connection.reset(); });
}

void Gate::refuse() {
    const std::lock_guard lock(core_->loop->mutex());
    core_->stop_accepting();
}

void Gate::delay(Direction direction, milliseconds time) {
    const std::lock_guard lock(core_->loop->mutex());
    if (direction != Direction::to_client) {
        core_->delay_to_server = time;
    }
    if (direction != Direction::to_server) {
        core_->delay_to_client = time;
    }
}

void Gate::half_open(Side told) {
    const std::lock_guard lock(core_->loop->mutex());
    core_->for_each([told](GateConnection& connection) { connection.end_for(told); });
}

void Gate::set_target(const Endpoint& target) {
    const std::lock_guard lock(core_->loop->mutex());
    core_->target = target;
}

namespace {

std::shared_ptr<FaultState> set_up(internal::GateCore& core, FaultState::Kind kind, const Match& match) {
    auto state = std::make_shared<FaultState>(kind, match);
    state->gate = core.weak_from_this();
    state->loop = core.loop;
    const std::lock_guard lock(core.loop->mutex());
    core.faults.push_back(state);
    return state;
}

}  // namespace

Fault Gate::cut_before(const Match& match) { return Fault(set_up(*core_, FaultState::Kind::cut_before, match)); }
Fault Gate::cut_after(const Match& match) { return Fault(set_up(*core_, FaultState::Kind::cut_after, match)); }
Fault Gate::hold_reply(const Match& match) { return Fault(set_up(*core_, FaultState::Kind::hold_reply, match)); }

Counts Gate::counts() const {
    const std::lock_guard lock(core_->loop->mutex());
    return core_->counts;
}

Counts Gate::counts(std::int64_t session_id) const {
    const std::lock_guard lock(core_->loop->mutex());
    const auto found = core_->session_counts.find(session_id);
    return found == core_->session_counts.end() ? Counts{} : found->second;
}

std::vector<Record> Gate::trace() const {
    const std::lock_guard lock(core_->loop->mutex());
    return {core_->records.begin(), core_->records.end()};
}

std::vector<Record> Gate::trace(std::int64_t session_id) const {
    auto all = trace();
    std::erase_if(all, [session_id](const Record& record) { return record.session != session_id; });
    return all;
}

void Gate::reset_trace() {
    const std::lock_guard lock(core_->loop->mutex());
    core_->records.clear();
    core_->counts = {};
    core_->session_counts.clear();
}

void Gate::limit_trace(std::size_t records) {
    const std::lock_guard lock(core_->loop->mutex());
    core_->record_limit = records;
}

int Gate::connection_count() const {
    const std::lock_guard lock(core_->loop->mutex());
    return static_cast<int>(core_->connections.size());
}

std::vector<std::int64_t> Gate::sessions() const {
    const std::lock_guard lock(core_->loop->mutex());
    return core_->sessions;
}

std::string Gate::password(std::int64_t session_id) const {
    const std::lock_guard lock(core_->loop->mutex());
    const auto found = core_->passwords.find(session_id);
    if (found == core_->passwords.end()) {
        throw Error("the gate " + endpoint().str() + " has not seen the session " + std::to_string(session_id));
    }
    return found->second;
}

bool Gate::expire(std::int64_t session_id) const {
    const std::string known_password = password(session_id);
    // The server drops the client's connection first. A client that reconnects before the session has ended would get a
    // connection on which the server never answers, and would notice only by its own timeout.
    struct Pause {
        internal::GateCore& gate;
        ~Pause() {
            const std::lock_guard lock(gate.loop->mutex());
            gate.admit_newcomers();
        }
    };
    Endpoint target;
    {
        const std::lock_guard lock(core_->loop->mutex());
        target = core_->target;
        core_->let_newcomers_wait();
    }
    const Pause pause{*core_};
    return expire_session(target, session_id, known_password);
}

}  // namespace zkrecipes::testenv
