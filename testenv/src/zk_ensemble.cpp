#include <algorithm>
#include <charconv>
#include <thread>
#include <zkrecipes/testenv/sessions.hpp>
#include <zkrecipes/testenv/zk_ensemble.hpp>

#include "net.hpp"

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
    std::vector<ZkServer> members;
    std::set<int> frozen;
    std::set<int> isolated;
};

ZkEnsemble::ZkEnsemble(int servers)
    : ZkEnsemble([&] {
          EnsembleOptions options;
          options.servers = servers;
          return options;
      }()) {}

ZkEnsemble::ZkEnsemble(EnsembleOptions options) : state_(std::make_unique<State>()) {
    for (int i = 0; i < options.servers; ++i) {
        ServerOptions server = options.server;
        server.deferred = true;
        server.name += "-" + std::to_string(i + 1);
        state_->members.emplace_back(std::move(server));
    }
    for (int i = 0; i < options.servers; ++i) {
        std::vector<std::string> lines;
        for (int j = 0; j < options.servers; ++j) {
            const Endpoint& client = member(j).endpoint();
            const int offset = client.port - 2181;
            lines.push_back("server." + std::to_string(j + 1) + "=" + client.address + ":" +
                            std::to_string(2888 + offset) + ":" + std::to_string(3888 + offset));
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
        if (state_->frozen.count(i) == 0 && state_->isolated.count(i) == 0 && member(i).mode() == "follower") {
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
            const bool counts = member(i).running() && state_->frozen.count(i) == 0 && state_->isolated.count(i) == 0;
            all_serve = !counts || member(i).serving();
        }
        const auto found = all_serve ? leader() : std::nullopt;
        if (found && state_->isolated.count(*found) == 0) {
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
    int running = 0;
    for (int j = 0; j < size(); ++j) {
        running += member(j).running() && state_->frozen.count(j) == 0 && state_->isolated.count(j) == 0 ? 1 : 0;
    }
    if (running * 2 > size() && state_->isolated.count(i) == 0) {
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
