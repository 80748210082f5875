#pragma once

#include <chrono>
#include <cstddef>

namespace zkrecipes::test {

/// What became of candidates for one leadership while all servers went away and came back, again and again.
struct ElectionReport {
    std::size_t rounds = 0;
    std::size_t terms = 0;        ///< leaderships that were begun
    std::size_t two_leaders = 0;  ///< two believed at the same moment that they lead
    std::size_t outlived = 0;     ///< one believed so after an outsider had seen its node gone
    std::size_t token_order = 0;  ///< a leadership began with a token that was not larger than the one before
    std::size_t unhealed = 0;     ///< nobody led in time after the servers were back, or a candidate was missing
    std::size_t misplaced = 0;    ///< candidates that have kept their session, but not their node or their place
    std::size_t kept = 0;         ///< candidates that have kept session, node and place
    std::size_t failed = 0;       ///< candidates that ended with an error
    std::size_t left_nodes = 0;   ///< nodes that are there in the end
    std::chrono::milliseconds slowest{0};  ///< from the return of the servers to a leader
    std::chrono::milliseconds took{0};

    bool well() const noexcept {
        return two_leaders + outlived + token_order + unhealed + misplaced + failed + left_nodes == 0;
    }
};

struct ElectionCrowdOptions {
    std::size_t candidates = 10;
    std::size_t rounds = 2;
    int servers = 3;
    std::chrono::milliseconds timeout{2000};  ///< of the candidates' sessions
    std::chrono::seconds patience{120};       ///< with the servers, and with the candidates after that
};

/// Candidates with a session and a thread each run for one leadership on servers of their own, all of which are killed
/// and started again in each round: every other time at once, otherwise when nobody leads any more. Watched by an
/// outsider with a session of its own. Throws testenv::Error.
ElectionReport run_election_crowd(const ElectionCrowdOptions& options);

}  // namespace zkrecipes::test
