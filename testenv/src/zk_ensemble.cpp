#include <algorithm>
#include <charconv>
#include <thread>
#include <zkrecipes/testenv/sessions.hpp>
#include <zkrecipes/testenv/zk_ensemble.hpp>

#include "net.hpp"
#include "quorum_links.hpp"

namespace zkrecipes::testenv {

using internal::Clock;
using std::chrono::milliseconds;

EnsembleOptions EnsembleOptions::stock(int servers) {
    EnsembleOptions options;
    options.servers = servers;
    options.server.tick_time = milliseconds(2000);
    options.server.init_limit = 10;
    options.server.sync_limit = 5;
    options.server.min_session_timeout = milliseconds(4000);
    options.server.max_session_timeout = milliseconds(40'000);
    return options;
}

struct ZkEnsemble::State {
    [[nodiscard]] bool in_majority(int i) const;
    void set_cut(int from, int to, bool cut);
    [[nodiscard]] bool all_followers_synced(int leader) const;

    std::vector<ZkServer> members;
    std::unique_ptr<internal::QuorumLinks> links;
    std::set<int> frozen;
    std::set<std::pair<int, int>> cuts;  // (from, to)
};

// Whether the member runs and can exchange packets with more than half of all members, possibly through others.
bool ZkEnsemble::State::in_majority(int i) const {
    const auto lives = [&](int j) { return members[static_cast<std::size_t>(j)].running() && frozen.count(j) == 0; };
    const int size = static_cast<int>(members.size());
    std::vector<int> reached;
    if (lives(i)) {
        reached.push_back(i);
    }
    for (std::size_t k = 0; k < reached.size(); ++k) {
        for (int j = 0; j < size; ++j) {
            const bool linked = cuts.count({reached[k], j}) == 0 && cuts.count({j, reached[k]}) == 0;
            if (linked && lives(j) && std::find(reached.begin(), reached.end(), j) == reached.end()) {
                reached.push_back(j);
            }
        }
    }
    return static_cast<int>(reached.size()) * 2 > size;
}

void ZkEnsemble::State::set_cut(int from, int to, bool cut) {
    if (!links) {
        throw Error("members can be cut off from each other only with EnsembleOptions::gated_links");
    }
    links->set_cut(from, to, cut);
    cut ? (void)cuts.insert({from, to}) : (void)cuts.erase({from, to});
}

// A follower may not have noticed yet that the leader dropped it.
bool ZkEnsemble::State::all_followers_synced(int leader) const {
    const auto answer = internal::four_letter_word(members[static_cast<std::size_t>(leader)].endpoint(), "mntr",
                                                   Clock::now() + milliseconds(1000));
    const std::string label = "zk_synced_followers\t";
    const auto begin = answer ? answer->find(label) : std::string::npos;
    if (begin == std::string::npos) {
        return false;
    }
    int expected = -1;
    for (int i = 0; i < static_cast<int>(members.size()); ++i) {
        expected += in_majority(i) ? 1 : 0;
    }
    return std::atoi(answer->c_str() + begin + label.size()) >= expected;
}

ZkEnsemble::ZkEnsemble(int servers)
    : ZkEnsemble([&] {
          EnsembleOptions options;
          options.servers = servers;
          return options;
      }()) {}

ZkEnsemble::ZkEnsemble(EnsembleOptions options) : state_(std::make_unique<State>()) {
    if (options.servers < 1) {
        throw Error("an ensemble needs at least one server, not " + std::to_string(options.servers) +
                    ": set EnsembleOptions::servers");
    }
    for (int i = 0; i < options.servers; ++i) {
        ServerOptions server = options.server;
        server.deferred = true;
        server.name += "-" + std::to_string(i + 1);
        state_->members.emplace_back(std::move(server));
    }
    std::vector<internal::QuorumLinks::Member> addresses;
    for (const auto& server : state_->members) {
        // If the usual ports are taken, all three move by the same distance.
        const int offset = server.endpoint().port - 2181;
        addresses.push_back({server.endpoint().address, static_cast<std::uint16_t>(2888 + offset),
                             static_cast<std::uint16_t>(3888 + offset)});
    }
    std::vector<std::string> direct;
    for (std::size_t j = 0; j < addresses.size(); ++j) {
        direct.push_back("server." + std::to_string(j + 1) + "=" + addresses[j].address + ":" +
                         std::to_string(addresses[j].quorum_port) + ":" + std::to_string(addresses[j].election_port));
    }
    if (options.gated_links) {
        state_->links = std::make_unique<internal::QuorumLinks>(addresses);
    }
    for (int i = 0; i < options.servers; ++i) {
        auto lines = state_->links ? state_->links->lines_for(i) : direct;
        if (options.servers == 1) {
            lines.emplace_back("standaloneEnabled=false");  // a server that is alone would not be the leader of itself
        }
        member(i).set_quorum(i + 1, std::move(lines));
    }
    for (auto& server : state_->members) {
        server.launch();
    }
    wait_quorum(options.server.ready_within);
}

ZkEnsemble::ZkEnsemble(ZkEnsemble&&) noexcept = default;
ZkEnsemble& ZkEnsemble::operator=(ZkEnsemble&&) noexcept = default;
ZkEnsemble::~ZkEnsemble() = default;

int ZkEnsemble::size() const { return static_cast<int>(state_->members.size()); }
ZkServer& ZkEnsemble::member(int i) { return state_->members.at(static_cast<std::size_t>(i)); }
const ZkServer& ZkEnsemble::member(int i) const { return state_->members.at(static_cast<std::size_t>(i)); }
std::string ZkEnsemble::connect_string(int i) const { return member(i).connect_string(); }

std::string ZkEnsemble::connect_string() const {
    std::string text;
    for (const auto& server : state_->members) {
        text += (text.empty() ? "" : ",") + server.connect_string();
    }
    return text;
}

namespace {

// "Zxid: 0x300000002" in the answer to srvr; the upper half is the epoch.
std::uint64_t epoch(const std::string& answer) {
    const std::string label = "Zxid: 0x";
    const auto begin = answer.find(label);
    std::uint64_t zxid = 0;
    if (begin != std::string::npos) {
        std::from_chars(answer.data() + begin + label.size(), answer.data() + answer.size(), zxid, 16);
    }
    return zxid >> 32;
}

}  // namespace

std::optional<int> ZkEnsemble::leader() const {
    std::optional<int> best;
    std::uint64_t best_epoch = 0;
    for (int i = 0; i < size(); ++i) {
        if (state_->frozen.count(i) != 0 || !member(i).running()) {
            continue;
        }
        const auto answer =
            internal::four_letter_word(member(i).endpoint(), "srvr", Clock::now() + milliseconds(1000)).value_or("");
        if (answer.find("Mode: leader") != std::string::npos && (!best || epoch(answer) > best_epoch)) {
            best = i;
            best_epoch = epoch(answer);
        }
    }
    return best;
}

int ZkEnsemble::follower() const {
    for (int i = 0; i < size(); ++i) {
        if (state_->in_majority(i) && member(i).mode() == "follower") {
            return i;
        }
    }
    throw Error("the ensemble has no follower now; the logs end:\n" + log_tails());
}

int ZkEnsemble::wait_quorum(milliseconds within) {
    const auto deadline = Clock::now() + within;
    for (;;) {
        bool all_serve = true;
        for (int i = 0; i < size() && all_serve; ++i) {
            all_serve = !state_->in_majority(i) || member(i).serving();
        }
        const auto found = all_serve ? leader() : std::nullopt;
        if (found && state_->in_majority(*found) && state_->all_followers_synced(*found)) {
            return *found;
        }
        if (Clock::now() >= deadline) {
            throw Error("the ensemble did not form a quorum in time; the logs end:\n" + log_tails());
        }
        std::this_thread::sleep_for(milliseconds(5));
    }
}

void ZkEnsemble::stop(int i) {
    member(i).stop();
    state_->frozen.erase(i);
}

void ZkEnsemble::kill(int i) {
    member(i).kill();
    state_->frozen.erase(i);
}

void ZkEnsemble::restart(int i) {
    kill(i);
    member(i).launch();
    if (state_->in_majority(i)) {
        member(i).wait_ready();
    }
}

void ZkEnsemble::freeze(int i) {
    member(i).freeze();
    state_->frozen.insert(i);
}

void ZkEnsemble::thaw(int i) {
    member(i).thaw();
    state_->frozen.erase(i);
}

void ZkEnsemble::isolate(int i) {
    for (int j = 0; j < size(); ++j) {
        if (i != j) {
            state_->set_cut(i, j, true);
            state_->set_cut(j, i, true);
        }
    }
}

void ZkEnsemble::partition(const std::set<int>& group, const std::set<int>& others) {
    for (const int i : group) {
        for (const int j : others) {
            state_->set_cut(i, j, true);
            state_->set_cut(j, i, true);
        }
    }
}

void ZkEnsemble::cut_link(int from, int to) { state_->set_cut(from, to, true); }

void ZkEnsemble::heal(int i) {
    for (int j = 0; j < size(); ++j) {
        if (i != j) {
            state_->set_cut(i, j, false);
            state_->set_cut(j, i, false);
        }
    }
}

void ZkEnsemble::heal() {
    for (const auto& [from, to] : std::set<std::pair<int, int>>(state_->cuts)) {
        state_->set_cut(from, to, false);
    }
}

void ZkEnsemble::expire_session(std::int64_t session_id, const std::string& password) const {
    const auto at = leader();
    if (!at) {
        throw Error("a session cannot be ended while the ensemble has no leader");
    }
    (void)testenv::expire_session(member(*at).endpoint(), session_id, password);
}

std::string ZkEnsemble::log_tails(int lines) const {
    std::string text;
    for (const auto& server : state_->members) {
        text += "--- " + server.options().name + " " + server.connect_string() + "\n" + server.log_tail(lines);
    }
    return text;
}

}  // namespace zkrecipes::testenv
