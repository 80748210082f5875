#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/client_process.hpp"
#include "sim/judge.hpp"
#include "sim/plan.hpp"
#include "sim/raw_client.hpp"
#include "testing/ensemble.hpp"

namespace zkrecipes::sim {

/// Somebody's tool that knows no owners: it deletes a lock node of ours and makes one in its place, which belongs to a
/// session of its own and goes away some time later. It strikes where whoever owned the node cannot see it:
///
/// in_doubt: the create has happened, its answer gets lost, and what is found by its name afterwards is not ours;
/// unseen: between the create and the first look at the directory, where another node is then the only child, made with
///     the deletion or there before;
/// held: while the holder reaches nobody, and finds a node of that name when it is back.
class Impostor {
public:
    /// What its nodes say: it begins as what we write, and is none.
    static constexpr const char* kSays =
        R"({"v":1,"id":"impostor","host":"nowhere","pid":7,"name":"n","meta":{"a":"b"})";

    Impostor(SimEnsemble& ensemble, const Plan& plan, std::vector<std::string> directories, Judge& judge);

    void begin(ClientProcess& process, Rng& rng);
    /// Takes away what it has made.
    void stop();

private:
    enum class When { in_doubt, unseen, held };
    enum class Stage { armed, sent, struck };
    struct Attack {
        When when = When::in_doubt;
        Stage stage = Stage::armed;
        Actor* victim = nullptr;
        SimTime lasts = 0;         // in_doubt, held: after that the victim is back; unseen: its next request is late
        SimTime stays = 0;         // the impostor's nodes
        std::string wanted;        // the path that the request begins its creates with
        bool blind = true;         // no other way was opened since
        SimTime unseen_until = 0;  // what was sent behind the create arrives no sooner
        std::vector<std::string> struck;
        std::uint64_t choice = 0;  // which node of several
    };
    using AttackPtr = std::shared_ptr<Attack>;

    void on_request(Actor& client, const Request& request);
    void on_commit(const Txn& txn);
    void on_made(const std::vector<std::string>& nodes);
    void own_txn(const Txn& txn);
    void own_effect(const Effect& effect);
    void tell_if_visible(const AttackPtr& attack, const std::string& node);
    void strike(const AttackPtr& attack);
    void strike_at_holder(ClientProcess& process, const AttackPtr& attack);
    std::vector<std::string> held_by(SessionId session) const;
    void send(std::vector<MultiOp> ops, const AttackPtr& attack);
    void let_go(const AttackPtr& attack);

    SimEnsemble& ensemble_;
    World& world_;
    const SimTime timeout_;
    const std::vector<std::string> directories_;
    Judge& judge_;
    std::unique_ptr<RawClient> tool_;
    std::map<int, AttackPtr> attacks_;  // by the victim's id
    std::set<std::string> doubtful_leases_;
    bool stopped_ = false;
};

}  // namespace zkrecipes::sim
