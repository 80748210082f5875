#include "session/connection/settings_check.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace zkrecipes::internal {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kServersInMind = 64;  // addresses may change all the time

milliseconds way_to_the_leader(const ServerSettings& settings) {
    return settings.observer ? 2 * settings.tick : settings.tick;
}

}  // namespace

SettingsCheck::SettingsCheck(SessionLock& lock, Connection& connection, std::shared_ptr<SettingsProbe> probe,
                             std::function<void(milliseconds)> assume)
    : lock_(lock), connection_(connection), probe_(std::move(probe)), assume_(std::move(assume)) {}

void SettingsCheck::connected() {
    judge();  // the timeout may be another one
    const std::string& server = connection_.fsm().server();
    const bool asks = probe_ && !server.empty() && !told_.contains(server);
    at_ = asks ? lock_.runtime().now() + Nanoseconds(connection_.incarnation().timeout) / 6 : Instant::max();
}

void SettingsCheck::on_time(Instant now) {
    if (now < at_) return;
    at_ = Instant::max();
    if (!connection_.connected()) return;
    const std::string server = connection_.fsm().server();
    const auto limit = std::clamp(connection_.incarnation().timeout / 12, milliseconds(10), milliseconds(1000));
    try {
        probe_->ask(server, limit, [this, self = lock_.self(), server](const std::string& answer) {
            self->run_internally([&] { on_answer(server, answer); });
        });
    } catch (const std::exception& error) {
        lock_.log().debug("session: cannot ask {} for its settings: {}", server, error.what());
    }
}

void SettingsCheck::on_answer(const std::string& server, const std::string& answer) {
    const auto told = read_settings(answer);
    if (!told) return lock_.log().debug("session: {} does not tell its settings", server);
    if (told_.size() >= kServersInMind) told_.clear();
    told_.insert(server);
    if (way_to_the_leader(*told) <= way_to_the_leader(worst_.second)) return;
    worst_ = {server, *told};
    if (connection_.fsm().has_session() && !connection_.closing()) judge();
}

void SettingsCheck::judge() {
    const auto& [server, told] = worst_;
    if (server.empty()) return;
    TickVerdict verdict =
        judge_tick(told, server, connection_.options().server_tick, connection_.incarnation().timeout);
    if (!verdict.warning.empty() && verdict.warning != warned_) {
        lock_.log().warn("session {:#x}: {}", connection_.printable_id(), verdict.warning);
        warned_ = std::move(verdict.warning);
    }
    if (verdict.assume > milliseconds::zero()) assume_(verdict.assume);
}

}  // namespace zkrecipes::internal
