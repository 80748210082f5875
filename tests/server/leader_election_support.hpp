#pragma once

#include <zkrecipes/leader_election.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {

/// LeaderElection::run() on a thread of its own, with a `lead` that does nothing until its stop is requested and the
/// test lets it go.
class Running {
public:
    explicit Running(LeaderElection& election, bool lets_go = true)
        : lets_go_(lets_go), thread_([this, &election] {
              try {
                  election.run([this](const Grant& grant, const std::stop_token& stop) { lead(grant, stop); },
                               stop_.get_token());
              } catch (const Error& error) {
                  error_ = error.errc();
              }
              ended_ = true;
          }) {}
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() {
        end();
        thread_.join();
    }

    void end() {
        let_go();
        stop_.request_stop();
    }
    void let_go() { lets_go_ = true; }
    int begun() const { return begun_; }
    bool leads() const { return leads_; }
    bool stop_requested() const { return stop_requested_; }  // of the present lead, or the last one
    bool ended() const { return ended_; }
    int overlaps() const { return overlaps_; }
    int begun_lost() const { return begun_lost_; }
    std::int64_t token() const { return token_; }
    std::int64_t session_id() const { return session_id_; }
    Errc error() const { return error_; }

private:
    void lead(const Grant& grant, const std::stop_token& stop) {
        if (grant.token() <= token_) ++begun_lost_;  // a leadership that has been before
        stop_requested_ = false;
        token_ = grant.token();
        session_id_ = grant.session_id();
        ++begun_;
        if (leads_.exchange(true)) ++overlaps_;  // last: who sees it asks for the others
        const std::stop_callback note(stop, [this] { stop_requested_ = true; });
        EXPECT_TRUE(await([&] { return stop_requested_ && lets_go_; }));
        leads_ = false;
    }

    std::atomic<bool> lets_go_, leads_{false}, stop_requested_{false}, ended_{false};
    std::atomic<int> begun_{0}, overlaps_{0}, begun_lost_{0};
    std::atomic<std::int64_t> token_{0}, session_id_{0};
    std::atomic<Errc> error_{Errc{}};
    std::stop_source stop_;
    std::thread thread_;
};

class LeaderElectionServerTest : public ExclusiveMutexServerTest {
protected:
    static ElectionOptions called(std::string id, ElectionLayout layout = ElectionLayout::latch) {
        ElectionOptions options;
        options.id = std::move(id);
        options.layout = layout;
        return options;
    }
    LeaderElection election(Session& s, std::string id = "", ElectionLayout layout = ElectionLayout::latch) {
        return {s, lock_path(), called(std::move(id), layout)};
    }
    static std::vector<std::string> ids(const std::vector<Participant>& candidates) {
        std::vector<std::string> out;
        for (const auto& candidate : candidates) out.push_back(candidate.id);
        return out;
    }
    void delete_all() {
        for (const auto& node : nodes()) observer().remove(lock_path() + "/" + node);
    }
};

}  // namespace zkrecipes::test
