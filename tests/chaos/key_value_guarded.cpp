// Stands in the place of examples/key_value/guarded.cpp, for the trial: stops the process by itself at the worst
// moment, between what a write has read and what it writes, and can leave the guard out. $KEY_VALUE_STOP_AT: before
// which transaction. $KEY_VALUE_GUARD: a sequencer that guards in place of the leadership.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <zkrecipes/sequencer.hpp>

#include "examples/key_value/store.hpp"

namespace key_value {

namespace {

/// A write that is sent on the connection of the session that has ended never arrives, guard or no guard. So that it is
/// the guard that is tried, the next session has to be there.
void await_another_session(const zkrecipes::Session& session, const zkrecipes::Grant& leadership) {
    for (;;) {
        const auto info = session.info();
        if (info.state == zkrecipes::SessionState::connected && info.session_id != leadership.session_id()) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace

zkrecipes::Transaction guarded(zkrecipes::Session& session, const zkrecipes::Grant& leadership) {
    static std::atomic<int> begun{0};
    const char* const stop_at = std::getenv("KEY_VALUE_STOP_AT");
    const char* const instead = std::getenv("KEY_VALUE_GUARD");
    if (stop_at != nullptr && ++begun == std::atoi(stop_at)) {
        std::raise(SIGSTOP);
        if (instead != nullptr) await_another_session(session, leadership);
    }
    if (instead != nullptr) return {session, zkrecipes::Sequencer::parse(instead)};
    return {session, leadership};
}

}  // namespace key_value
