#include <atomic>
#include <iostream>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <zkrecipes/error.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/transaction.hpp>

#include "chaos/actor_roles.hpp"

namespace zkrecipes::chaos {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kPatience{60};

class WriterRole {
public:
    WriterRole(const ActorOptions& options, Reply& reply) : options_(options), reply_(reply), session_(open()) {}

    int run() {
        if (!session_.wait_connected(kPatience)) {
            reply_.say("error not connected");
            return 1;
        }
        reply_.say("connected");
        std::thread([finish = finish_]() mutable {  // it may wait for input for ever; the process ends without it
            std::string command;
            while (std::getline(std::cin, command) && command != "quit") {
            }
            finish.request_stop();
        })
            .detach();
        LeaderElection election(session_, options_.text("lock"));
        bool well = true;
        election.run(
            [&](const Grant& leadership, const std::stop_token& stop) {
                if (lead(leadership, stop)) return;
                well = false;
                finish_.request_stop();
            },
            finish_.get_token());
        session_.close();
        return well ? 0 : 1;
    }

private:
    Session open() const {
        SessionOptions session;
        session.hosts = options_.hosts();
        session.timeout = options_.timeout();
        session.server_tick = std::chrono::milliseconds(options_.number("tick-ms", 0));
        return Session(std::move(session));
    }

    /// Writes all the time, and does not stop when it is told to: only a refusal ends it. False: something is wrong.
    bool lead(const Grant& grant, const std::stop_token& stop) {
        // Every second term writes by its sequencer: then no clock of ours keeps a late write from being sent.
        const bool by_sequencer = ++terms_ % 2 == 0;
        last_version_.reset();
        for (int n = 0; !finish_.stop_requested(); ++n) {
            Transaction transaction = guarded_by(grant, by_sequencer);
            transaction.set(options_.text("data"), std::to_string(grant.token()) + " " + std::to_string(n));
            try {
                const auto result = transaction.try_commit_until(kPatience);
                if (result && !acknowledged(result->operations.at(0).version, grant)) return false;
            } catch (const Error& error) {
                if (error.errc() == Errc::lock_lost) return refused(grant, stop, by_sequencer);
                // Where the session ended under it: the next one will tell.
                if (error.errc() != Errc::outcome_unknown && error.errc() != Errc::connection_lost) throw;
                unknown_ = true;
            }
            std::this_thread::sleep_for(1ms);
        }
        return true;
    }

    Transaction guarded_by(const Grant& grant, bool by_sequencer) {
        const std::string instead = options_.text("guard");  // a control, which the harness must catch
        if (!instead.empty()) return Transaction(session_, Sequencer::parse(instead));
        return by_sequencer ? Transaction(session_, Sequencer(grant)) : Transaction(session_, grant);
    }

    /// The leader is the only one to write: what stands between two of its writes is somebody else's.
    bool acknowledged(std::int32_t version, const Grant& grant) {
        if (!last_version_) {
            reply_.say("first " + std::to_string(grant.token()) + " " + std::to_string(version));
        } else if (version != *last_version_ + 1 && !std::exchange(unknown_, false)) {
            reply_.say("error between version " + std::to_string(*last_version_) + " and " + std::to_string(version) +
                       " somebody else has written");
            return false;
        }
        last_version_ = version;
        return true;
    }

    bool refused(const Grant& grant, const std::stop_token& stop, bool by_sequencer) {
        const auto until = std::chrono::steady_clock::now() + kPatience;
        while (!stop.stop_requested() || !grant.lost().stop_requested()) {
            if (std::chrono::steady_clock::now() > until) {
                reply_.say("error refused, but nobody was asked to stop, or the loss was not told");
                return false;
            }
            std::this_thread::sleep_for(1ms);
        }
        unknown_ = false;
        reply_.say("refused " + std::to_string(grant.token()) + " " + std::to_string(last_version_.value_or(-1)) +
                   (by_sequencer ? " by the servers" : " by its own clock or the servers"));
        return true;
    }

    const ActorOptions& options_;
    Reply& reply_;
    std::stop_source finish_;
    Session session_;
    int terms_ = 0;
    std::optional<std::int32_t> last_version_;  // of this term's writes
    bool unknown_ = false;                      // whether the last one has happened
};

}  // namespace

int run_writer(const ActorOptions& options, Board&, Reply& reply) { return WriterRole(options, reply).run(); }

}  // namespace zkrecipes::chaos
