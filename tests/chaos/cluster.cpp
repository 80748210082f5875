#include "chaos/cluster.hpp"

#include <zkrecipes/testenv/gate.hpp>
#include <zkrecipes/testenv/zk_ensemble.hpp>

namespace zkrecipes::chaos {

namespace {

testenv::EnsembleOptions stock(Cluster::Links links) {
    auto options = testenv::EnsembleOptions::stock(Cluster::kSize);
    options.gated_links = links == Cluster::Links::gated;
    return options;
}

}  // namespace

struct Cluster::State {
    explicit State(Links how) : links(how), ensemble(stock(how)) {}

    const Links links;
    testenv::ZkEnsemble ensemble;
    std::vector<testenv::Gate> gates;  // one in front of each member
    int turn = 0;
};

Cluster::Cluster(Links links) : state_(std::make_unique<State>(links)) {
    testenv::GateOptions raw;
    raw.raw = true;
    for (int i = 0; i < kSize; ++i) state_->gates.emplace_back(state_->ensemble.member(i).endpoint(), raw);
}

Cluster::~Cluster() = default;

Cluster::Links Cluster::links() const { return state_->links; }

std::string Cluster::server(int index) const { return state_->ensemble.connect_string(index); }
std::string Cluster::gated(int index) const { return state_->gates[static_cast<std::size_t>(index)].connect_string(); }

std::vector<std::string> Cluster::servers() const {
    std::vector<std::string> all;
    for (int i = 0; i < kSize; ++i) all.push_back(server(i));
    return all;
}

std::string Cluster::all_servers() const { return servers_except(-1); }

std::string Cluster::servers_except(int index) const {
    std::string all;
    for (int i = 0; i < kSize; ++i) {
        if (i != index) all += (all.empty() ? "" : ",") + server(i);
    }
    return all;
}

std::string Cluster::log_tails() const { return state_->ensemble.log_tails(); }

int Cluster::wait_whole() { return state_->ensemble.wait_quorum(std::chrono::seconds(90)); }

int Cluster::follower() {
    const int leader = wait_whole();
    do {
        state_->turn = (state_->turn + 1) % kSize;
    } while (state_->turn == leader);
    return state_->turn;
}

void Cluster::black_hole(int index) { state_->gates[static_cast<std::size_t>(index)].blackhole(); }
void Cluster::pass(int index) { state_->gates[static_cast<std::size_t>(index)].pass(); }
void Cluster::cut_off(int index) { state_->ensemble.isolate(index); }
void Cluster::join(int index) { state_->ensemble.heal(index); }
void Cluster::freeze(int index) { state_->ensemble.freeze(index); }
void Cluster::thaw(int index) { state_->ensemble.thaw(index); }
void Cluster::kill(int index) { state_->ensemble.kill(index); }
void Cluster::stop(int index) { state_->ensemble.stop(index); }
void Cluster::start(int index) { state_->ensemble.restart(index); }

}  // namespace zkrecipes::chaos
