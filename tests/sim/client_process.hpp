#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>

#include "session/connection/server_probe.hpp"
#include "session/session_core.hpp"
#include "sim/plan.hpp"
#include "testing/ensemble.hpp"
#include "testing/sim_client.hpp"
#include "testing/sim_runtime.hpp"

namespace zkrecipes::sim {

/// One program that uses the library: a clock of its own, one session.
class ClientProcess {
public:
    ClientProcess(SimEnsemble& ensemble, const Plan& plan, int number);
    ~ClientProcess();

    Actor& actor() noexcept { return actor_; }
    SimRuntime& runtime() noexcept { return *runtime_; }
    Session& session() noexcept { return *session_; }
    const std::string& name() const noexcept { return actor_.name(); }
    int number() const noexcept { return number_; }
    Deadline deadline_in(SimTime from_now) const { return runtime_->deadline_in(Nanoseconds(from_now)); }

    /// It ends in an instant: no packet leaves or reaches it any more. What its fibers do afterwards concerns nobody.
    void die();
    bool dead() const noexcept { return dead_; }
    bool closing = false;  // its session was closed on purpose

    /// Its handle on the servers, the newest one. Null: none.
    std::shared_ptr<SimClient> client() const;

    /// Closes the session and drops it. What is then still alive of it is a leak.
    void end_session();
    std::string leaks() const;
    /// What calls have left in its open session.
    std::string leftovers() const;

    /// Counts how often it was stopped, for checks of punctuality. Nothing else may keep a call from its deadline.
    std::uint64_t disturbances = 0;

private:
    SimEnsemble& ensemble_;
    const int number_;
    Actor actor_;
    std::shared_ptr<SimRuntime> runtime_;
    std::shared_ptr<SimClientFactory> clients_;
    std::unique_ptr<Session> session_;
    std::weak_ptr<internal::SessionCore> core_;
    bool dead_ = false;
};

}  // namespace zkrecipes::sim
