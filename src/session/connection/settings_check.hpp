#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "session/common/session_lock.hpp"
#include "session/connection/connection.hpp"
#include "session/connection/server_settings.hpp"

namespace zkrecipes::internal {

/// Asks a server for its settings, by a connection of its own.
class SettingsProbe {
public:
    virtual ~SettingsProbe() = default;
    /// Answers on the protocol lane within about `limit`: what the server said to "conf"; empty: nothing. Does not
    /// block the caller.
    virtual void ask(std::string server, std::chrono::milliseconds limit, std::function<void(std::string)> done) = 0;
};

std::shared_ptr<SettingsProbe> make_settings_probe(std::shared_ptr<Runtime> runtime);

/// Asks each server to which the session connects, until it has told its settings once, and warns if the lease rests on
/// an assumption that does not hold there.
///
/// It asks a sixth of the timeout after the connect. Sessions that are closed before then cost the servers nothing. The
/// answer is early enough if it comes within a third of the timeout: a connect touches the session on the leader, so
/// whatever the tick is, no lease that was computed before then ends too late. It comes later if the lane is busy until
/// then, for example with a name server that does not answer.
class SettingsCheck {
public:
    /// `assume` makes the lease assume a tick that is at least this long.
    SettingsCheck(SessionLock& lock, Connection& connection, std::shared_ptr<SettingsProbe> probe,
                  std::function<void(std::chrono::milliseconds)> assume);

    // All with the lock held.
    void connected();
    void stop() noexcept { at_ = Instant::max(); }
    Instant wake_at() const noexcept { return at_; }
    void on_time(Instant now);

private:
    void on_answer(const std::string& server, const std::string& answer);
    void judge();

    SessionLock& lock_;
    Connection& connection_;
    const std::shared_ptr<SettingsProbe> probe_;  // null: none
    const std::function<void(std::chrono::milliseconds)> assume_;
    Instant at_ = Instant::max();
    std::set<std::string> told_;                    // servers that have answered
    std::pair<std::string, ServerSettings> worst_;  // the server with the longest way to the leader that told
    std::string warned_;
};

}  // namespace zkrecipes::internal
