#pragma once

#include <memory>
#include <string>
#include <vector>

namespace zkrecipes::chaos {

/// The ensemble on trial: three servers with the tick, init and sync limits that ZooKeeper ships with, and the faults
/// that the trials need.
class Cluster {
public:
    Cluster();
    ~Cluster();

    int size() const { return 3; }
    std::string server(int index) const;  // "host:port", for clients
    std::string gated(int index) const;   // the same through the gate that black_hole() closes
    std::vector<std::string> servers() const;
    std::string servers_except(int index) const;  // as a connect string

    int leader();                                   // waits for one
    int follower();                                 // one of them, in turn
    int index_of(const std::string& server) const;  // by address; -1: unknown

    void black_hole(int index);  // both directions of the gate; connections stay open
    void pass(int index);
    void cut_off(int index);  // the server from its peers; its clients keep it
    void join(int index);
    void freeze(int index);
    void thaw(int index);
    void kill(int index);
    void stop(int index);
    void start(int index);    // and waits until it serves
    void wait_all_serving();  // throws when it takes too long

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace zkrecipes::chaos
