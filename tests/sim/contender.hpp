#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/judge.hpp"
#include "sim/raw_client.hpp"

namespace zkrecipes::sim {

/// Somebody who is none of ours stands in the queue of a lock and keeps to its rules: kazoo's Lock, WriteLock and
/// ReadLock as they choose their names and whom they wait for, and a client that names its node itself, with the number
/// that the server hands out next (and a name that comes first). It holds from the list that shows nobody before it
/// until its node is gone.
class Contender {
public:
    enum class Style { kazoo_lock, kazoo_write, kazoo_read, same_number };

    Contender(SimEnsemble& ensemble, const Plan& plan, Judge& judge, int place, std::string directory, Style style);

    void start();
    void stop();
    void committed(const Txn& txn);
    bool owns(SessionId session) const { return client_.owns(session); }

private:
    void attempt();
    void create();
    void look();
    void listed(const std::vector<std::string>& names);
    void give_back();
    void rest();
    bool before_us(const std::string& name) const;
    std::string prefix() const;
    void in(SimTime delay, void (Contender::*what)());

    World& world_;
    SimEnsemble& ensemble_;
    Judge& judge_;
    const int place_;
    const std::string directory_;
    const Style style_;
    const SimTime timeout_;
    Rng rng_;
    RawClient client_;
    std::string node_;         // name
    std::int32_t number_ = 0;  // same_number: that of the node
    bool in_time_ = true;      // … was the next one when the node was made
    std::string held_;         // path of the node by which it holds
    bool stopped_ = false;
};

}  // namespace zkrecipes::sim
