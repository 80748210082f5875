#include "server/election_crowd.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/session.hpp>

#include <spdlog/sinks/null_sink.h>
#include <spdlog/spdlog.h>

#include <zkrecipes/testenv/raw_client.hpp>
#include <zkrecipes/testenv/zk_ensemble.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "support/await.hpp"

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPath = "/election/of/many";

SessionOptions candidate_options(const std::string& hosts, std::chrono::milliseconds timeout) {
    SessionOptions options;
    options.hosts = hosts;
    options.timeout = timeout;
    options.server_tick = 100ms;  // what the servers of the tests have
    options.logger = std::make_shared<spdlog::logger>("crowd", std::make_shared<spdlog::sinks::null_sink_mt>());
    return options;
}

/// The leaderships, in the order in which they began.
class Terms {
public:
    void begin(const Grant& leadership) {
        const auto node = leadership.node();
        const std::lock_guard lock(mutex_);
        ++begun_;
        disorder_ += leadership.token() <= last_;
        last_ = leadership.token();
        nodes_.insert(node.substr(node.rfind('/') + 1));
    }
    bool has_led(const std::string& node) const {
        const std::lock_guard lock(mutex_);
        return nodes_.contains(node);
    }
    std::size_t begun() const {
        const std::lock_guard lock(mutex_);
        return begun_;
    }
    std::size_t disorder() const {
        const std::lock_guard lock(mutex_);
        return disorder_;
    }

private:
    mutable std::mutex mutex_;
    FencingToken last_ = 0;
    std::size_t begun_ = 0, disorder_ = 0;
    std::set<std::string> nodes_;
};

/// One candidate, which leads until it is told not to.
class CrowdCandidate {
public:
    CrowdCandidate(const SessionOptions& options, std::string id, Terms& terms)
        : session_(options),
          election_(session_, kPath, named(std::move(id))),
          terms_(terms),
          thread_([this] { run(); }) {}
    CrowdCandidate(const CrowdCandidate&) = delete;
    CrowdCandidate& operator=(const CrowdCandidate&) = delete;
    ~CrowdCandidate() {
        stop();
        thread_.join();
    }
    void stop() { stop_.request_stop(); }
    bool resign() { return election_.resign(); }
    bool failed() const { return failed_; }
    std::int64_t session_id() const { return session_.info().session_id; }
    const std::string& id() const { return election_.id(); }
    /// The node by which it surely leads now; empty: none.
    std::string leads_by() const {
        const std::lock_guard lock(mutex_);
        return leadership_ != nullptr && leadership_->held() ? leadership_->node() : std::string();
    }

private:
    static ElectionOptions named(std::string id) {
        ElectionOptions options;
        options.id = std::move(id);
        return options;
    }
    void run() {
        try {
            election_.run([this](const Grant& leadership, const std::stop_token& stop) { lead(leadership, stop); },
                          stop_.get_token());
        } catch (const Error&) {
            failed_ = true;
        }
    }
    void lead(const Grant& leadership, const std::stop_token& stop) {
        terms_.begin(leadership);
        std::unique_lock lock(mutex_);
        leadership_ = &leadership;
        ended_.wait(lock, stop, [] { return false; });
        leadership_ = nullptr;
    }

    Session session_;
    LeaderElection election_;
    Terms& terms_;
    mutable std::mutex mutex_;  // guards leadership_
    const Grant* leadership_ = nullptr;
    std::condition_variable_any ended_;
    std::atomic<bool> failed_{false};
    std::stop_source stop_;
    std::thread thread_;
};

using Candidates = std::vector<std::unique_ptr<CrowdCandidate>>;

/// Watches the directory through a session of its own, and what the candidates believe.
class Outsider {
public:
    Outsider(std::string hosts, const Candidates& candidates)
        : hosts_(std::move(hosts)),
          candidates_(candidates),
          looking_([this](const std::stop_token& stop) {
              while (!stop.stop_requested()) look();
          }),
          judging_([this](const std::stop_token& stop) {
              while (!stop.stop_requested()) judge();
          }) {}

    std::size_t two_leaders() const { return two_leaders_; }
    std::size_t outlived() const { return outlived_; }

    /// Names of the nodes by the id that stands in them; nothing when no server answers.
    std::optional<std::map<std::string, std::string>> nodes() {
        const std::lock_guard lock(client_mutex_);
        try {
            auto& client = connected();
            client.sync("/");
            std::map<std::string, std::string> out;
            for (const auto& name : client.children(kPath).value_or(std::vector<std::string>())) {
                const auto node = client.get(std::string(kPath) + "/" + name);
                if (node) out[node->data] = name;
            }
            return out;
        } catch (const testenv::Error&) {
            client_.reset();
            return std::nullopt;
        }
    }

private:
    testenv::RawClient& connected() {
        if (!client_) {
            testenv::RawClientOptions options;
            options.connect_within = 500ms;
            options.answer_within = 1000ms;
            options.reconnect = false;
            client_.emplace(hosts_, options);
        }
        return *client_;
    }

    void look() {
        {
            const std::lock_guard lock(client_mutex_);
            try {
                auto& client = connected();
                client.sync("/");
                std::set<std::string> present;
                for (const auto& name : client.children(kPath).value_or(std::vector<std::string>())) {
                    present.insert(std::string(kPath) + "/" + name);
                }
                const std::lock_guard guard(gone_mutex_);
                for (const auto& node : seen_) {
                    if (!present.contains(node)) gone_.insert(node);
                }
                seen_ = std::move(present);
            } catch (const testenv::Error&) {
                client_.reset();
            }
        }
        std::this_thread::sleep_for(2ms);
    }

    bool is_gone(const std::string& node) {
        const std::lock_guard guard(gone_mutex_);
        return gone_.contains(node);
    }

    void judge() {
        const CrowdCandidate* first = nullptr;
        std::string by;
        for (const auto& candidate : candidates_) {
            const auto node = candidate->leads_by();
            if (node.empty()) continue;
            // Gone first, and still believed afterwards.
            if (is_gone(node) && candidate->leads_by() == node) ++outlived_;
            // The first one led before this one was asked; if it still does, they did at the same moment.
            if (first != nullptr && first->leads_by() == by) ++two_leaders_;
            first = candidate.get();
            by = node;
        }
        std::this_thread::sleep_for(500us);
    }

    const std::string hosts_;
    const Candidates& candidates_;
    std::mutex client_mutex_;  // guards client_ and seen_
    std::optional<testenv::RawClient> client_;
    std::set<std::string> seen_;
    std::mutex gone_mutex_;  // guards gone_
    std::set<std::string> gone_;
    std::atomic<std::size_t> two_leaders_{0}, outlived_{0};
    std::jthread looking_, judging_;
};

/// One server, or an ensemble.
class Servers {
public:
    explicit Servers(int count) { count == 1 ? void(one_.emplace()) : void(many_.emplace(count)); }
    std::string connect_string() const { return one_ ? one_->connect_string() : many_->connect_string(); }
    void kill() {
        if (one_) return one_->kill();
        for (int i = 0; i < many_->size(); ++i) many_->kill(i);
    }
    void start(std::chrono::milliseconds within) {
        if (one_) return one_->start();
        for (int i = 0; i < many_->size(); ++i) many_->member(i).launch();
        many_->wait_quorum(within);
    }

private:
    std::optional<testenv::ZkServer> one_;
    std::optional<testenv::ZkEnsemble> many_;
};

class Crowd {
public:
    explicit Crowd(const ElectionCrowdOptions& options) : options_(options), servers_(options.servers) {
        const auto session = candidate_options(servers_.connect_string(), options.timeout);
        for (std::size_t i = 0; i < options.candidates; ++i) {
            candidates_.push_back(std::make_unique<CrowdCandidate>(session, "candidate " + std::to_string(i), terms_));
        }
        outsider_.emplace(servers_.connect_string(), candidates_);
    }

    ElectionReport run() {
        const auto began = std::chrono::steady_clock::now();
        expect_whole();
        for (report_.rounds = 0; report_.rounds < options_.rounds; ++report_.rounds) round();
        for (const auto& candidate : candidates_) candidate->stop();
        const bool left = !await_that([&] {
            const auto nodes = outsider_->nodes();
            return nodes && nodes->empty();
        });
        if (left) report_.left_nodes = outsider_->nodes().value_or(std::map<std::string, std::string>()).size();
        for (const auto& candidate : candidates_) report_.failed += candidate->failed();
        report_.terms = terms_.begun();
        report_.token_order = terms_.disorder();
        report_.two_leaders = outsider_->two_leaders();
        report_.outlived = outsider_->outlived();
        report_.took = since(began);
        return report_;
    }

private:
    static std::chrono::milliseconds since(std::chrono::steady_clock::time_point start) {
        return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
    }
    template <class Condition>
    bool await_that(Condition condition) {
        return await(condition, options_.patience);
    }
    CrowdCandidate* leader() {
        for (const auto& candidate : candidates_) {
            if (!candidate->leads_by().empty()) return candidate.get();
        }
        return nullptr;
    }
    /// One leads and all stand in the queue.
    void expect_whole() {
        const bool whole = await_that([&] {
            const auto nodes = outsider_->nodes();
            return leader() != nullptr && nodes && nodes->size() == candidates_.size();
        });
        report_.unhealed += !whole;
    }

    void round() {
        struct Place {
            std::int64_t session = 0;
            std::string node;
        };
        std::map<std::string, Place> before;
        const auto nodes = outsider_->nodes().value_or(std::map<std::string, std::string>());
        for (const auto& candidate : candidates_) {
            const auto own = nodes.find(candidate->id());
            if (own != nodes.end() && candidate->leads_by().empty()) {
                before[candidate->id()] = {candidate->session_id(), own->second};
            }
        }
        servers_.kill();
        if (report_.rounds % 2 == 1) report_.unhealed += !await_that([&] { return leader() == nullptr; });
        servers_.start(options_.patience);
        const auto back = std::chrono::steady_clock::now();
        report_.unhealed += !await_that([&] { return leader() != nullptr; });
        report_.slowest = std::max(report_.slowest, since(back));
        expect_whole();
        // Whoever has kept its session has kept its node, unless it has led meanwhile and gone to the back.
        const auto after = outsider_->nodes().value_or(std::map<std::string, std::string>());
        for (const auto& candidate : candidates_) {
            const auto place = before.find(candidate->id());
            const auto now = after.find(candidate->id());
            if (place == before.end() || now == after.end()) continue;
            if (place->second.session != candidate->session_id()) continue;
            const bool same = place->second.node == now->second;
            if (same) ++report_.kept;
            if (!same && !terms_.has_led(place->second.node)) ++report_.misplaced;
        }
        if (auto* leading = leader()) leading->resign();  // and the next one's turn
    }

    const ElectionCrowdOptions options_;
    Servers servers_;
    Terms terms_;
    Candidates candidates_;
    std::optional<Outsider> outsider_;
    ElectionReport report_;
};

}  // namespace

ElectionReport run_election_crowd(const ElectionCrowdOptions& options) { return Crowd(options).run(); }

}  // namespace zkrecipes::test
