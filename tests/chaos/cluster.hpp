#pragma once

#include <memory>
#include <string>
#include <vector>

namespace zkrecipes::chaos {

/// The ensemble on trial: three servers with the tick, init and sync limits that ZooKeeper ships with, and the faults
/// that the trials need. All throw zkrecipes::testenv::Error.
class Cluster {
public:
    static constexpr int kSize = 3;

    /// How the servers reach each other.
    enum class Links {
        plain,
        /// Through gates, as cut_off() needs it. What is different then: to connect to a server that does not listen is
        /// not refused but ends after the fact, which a follower does not try again. An election may so take an init
        /// limit (20 s) more.
        gated
    };
    explicit Cluster(Links links);
    ~Cluster();

    Links links() const;

    std::string server(int index) const;  // "host:port", for clients
    std::string gated(int index) const;   // the same server behind the gate that black_hole() closes
    std::vector<std::string> servers() const;
    std::string all_servers() const;              // as a connect string
    std::string servers_except(int index) const;  // as a connect string

    int wait_whole();  // until all serve; returns the leader
    std::string log_tails() const;
    int follower();  // one of them, in turn

    void black_hole(int index);  // both directions of the gate; its connections stay open and silent
    void pass(int index);
    void cut_off(int index);  // the server from its peers, with gated links; its clients keep it
    void join(int index);
    void freeze(int index);
    void thaw(int index);
    void kill(int index);
    void stop(int index);
    void start(int index);  // and waits until it serves

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace zkrecipes::chaos
