// What a handle has only with TLS or SASL.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "client/zk_handle.hpp"

namespace zkrecipes::internal {
namespace {

/// How long finding out why a TLS handshake failed may take.
constexpr auto kTlsCheckLimit = std::chrono::seconds(1);

ZkRelay::Limits relay_limits(int timeout_ms) {
    using std::chrono::milliseconds;
    return {std::clamp(milliseconds(timeout_ms / 6), milliseconds(100), milliseconds(2000)),
            std::clamp(milliseconds(timeout_ms / 2), milliseconds(500), milliseconds(10'000))};
}

}  // namespace

/// Answers what the C client takes for its server.
std::string ZkHandle::begin_relay(const std::vector<std::string>& addresses) {
    const auto on_problem = [runtime = runtime_, weak = weak_from_this()](const ZkRelay::Problem& problem) {
        // On the relay's thread, which must not hold the last reference.
        runtime->post(Lane::blocking, [weak, problem] {
            if (const auto self = weak.lock()) self->on_tls_problem(problem);
        });
    };
    const auto relay = std::make_shared<ZkRelay>(addresses, relay_limits(timeout_ms_), on_problem);
    const std::lock_guard lock(mutex_);
    relay_ = relay;
    return relay->address();
}

void ZkHandle::on_tls_problem(const ZkRelay::Problem& problem) {
    std::string text;
    std::uint64_t count = 0;
    {
        const std::lock_guard lock(mutex_);
        if (life_ != Life::open || status_.state != ClientState::connecting) return;
        count = ++tls_problems_;
        text = tls_problem_;
    }
    // Often enough: the first time, and then each time that the number has doubled.
    const bool look = (count & (count - 1)) == 0;
    if (!problem.in_handshake || look || text.empty()) {
        text = problem.in_handshake ? why_no_handshake(problem.server, *tls_, kTlsCheckLimit) : "";
        if (text.empty()) text = problem.text;
        if (!problem.server.empty()) text = problem.server + ": " + text;
    }
    if (look) logger_->warn("ZooKeeper over TLS: {} ({} attempts)", text, count);
    {
        const std::lock_guard lock(mutex_);
        tls_problem_ = text;
    }
    tell([&](ClientEvents& events) { events.on_problem(text); });
}

}  // namespace zkrecipes::internal
