#include "chaos/lease_trial.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "chaos/actor_process.hpp"
#include "chaos/board.hpp"
#include "chaos/queue_observer.hpp"

namespace zkrecipes::chaos {

namespace {

using namespace std::chrono_literals;

constexpr int kContenders = 2;
// With a frozen leader two followers have been seen to take forty seconds to elect another.
constexpr std::chrono::milliseconds kMaxWait = 120s;

class Trial {
public:
    Trial(Cluster& cluster, const FaultOptions& options, std::mt19937_64& random)
        : cluster_(cluster), options_(options), random_(random), board_(Board::create()), observer_(cluster.servers()) {
        rules_ = options.rules;
        locks_ = options.holds * static_cast<int>(rules_.size());
        // Never the same directory twice: the servers keep what an earlier trial left.
        dir_ = "/trial/" + std::to_string(random());
    }

    ~Trial() {
        if (!fault_is_on_) return;
        try {
            end_fault();  // the trial failed, but the next one needs the ensemble
        } catch (const std::exception&) {
        }
    }

    FaultResult run() {
        observer_.watch(dir_, 0, locks_);
        choose_server();
        start_holders();
        start_contenders();
        if (moment() == Moment::settled) {
            holders_acquire();
            contenders_queue_up();
            // Long enough, too, for the own nodes to be watched.
            std::this_thread::sleep_for(700ms + random_ms(1500));
            begin_fault();
        } else {
            // A random phase between pings of the idle client and those of the leader.
            std::this_thread::sleep_for(random_ms(2000));
            if (moment() == Moment::after_pause) pause_holders();
            holders_acquire();
            begin_fault();
            contenders_acquire();
        }
        if (ends_before_the_grant()) {
            std::this_thread::sleep_for(options_.timeout + 500ms + random_ms(2500));
            end_fault();
            await_next_grants(options_.timeout + 4s);
        } else {
            await_next_grants(options_.timeout + 15s);
            linger();
            end_fault();
        }
        await_return();
        finish();
        return judge_all();
    }

private:
    bool leader_suffers() const {
        return options_.fault == Fault::leader_frozen || options_.fault == Fault::leader_frozen_behind;
    }
    bool ends_before_the_grant() const { return options_.brief && leader_suffers(); }
    Moment moment() const { return leader_suffers() ? Moment::settled : options_.moment; }
    std::chrono::milliseconds random_ms(int below) {
        return std::chrono::milliseconds(random_() % static_cast<unsigned>(below));
    }

    void choose_server() {
        leader_ = cluster_.wait_whole();
        const bool on_leader = options_.fault == Fault::leader_frozen;
        server_ = on_leader ? leader_ : cluster_.follower();
        victim_ = leader_suffers() ? leader_ : server_;
    }

    void start_holders() {
        const auto hosts = options_.fault == Fault::black_hole ? cluster_.gated(server_) : cluster_.server(server_);
        for (std::size_t i = 0; i < rules_.size(); ++i) {
            std::vector<std::string> arguments{"hosts=" + hosts,
                                               "timeout-ms=" + std::to_string(options_.timeout.count())};
            arguments.push_back(rules_[i] == Rule::library ? "role=client" : "role=naive");
            if (rules_[i] != Rule::library) arguments.push_back(std::string("rule=") + to_string(rules_[i]));
            start(holders_, std::move(arguments), static_cast<int>(i), first_lock(i), options_.holds);
        }
    }

    void holders_acquire() {
        for (auto& holder : holders_) holder.send("acquire");
        for (auto& holder : holders_) {
            try {
                for (int lock = 0; lock < options_.holds; ++lock) holder.expect("granted", kMaxWait);
            } catch (const std::exception&) {
                holder.send("show");
                holder.expect("shown", kMaxWait);
                holder.expect("granted", 0ms);  // with what was shown
            }
        }
    }

    // Less than the two thirds of the timeout after which the C client would make a new connection, and with that
    // touch the session.
    void pause_holders() {
        for (auto& holder : holders_) holder.send("freeze");
        for (auto& holder : holders_) {
            if (!await([&] { return holder.is_stopped(); }, kMaxWait))
                throw std::runtime_error("a holder did not stop");
        }
        std::this_thread::sleep_for(options_.timeout / 3 +
                                    random_ms(static_cast<int>(options_.timeout.count() * 3 / 10)));
        for (auto& holder : holders_) holder.resume();
    }

    // One with the library and one that asks a hundred times a second whether it is first, each on servers that the
    // fault leaves alone, with sessions that outlive it.
    void start_contenders() {
        const auto hosts = cluster_.servers_except(victim_);
        start(contenders_, {"role=client", "hosts=" + hosts, "timeout-ms=20000"}, 10, 0, locks_);
        start(contenders_, {"role=naive", "rule=last-answer", "hosts=" + hosts, "timeout-ms=20000"}, 11, 0, locks_);
    }

    void contenders_acquire() {
        for (auto& contender : contenders_) contender.send("acquire");
    }

    void contenders_queue_up() {
        contenders_acquire();
        const bool queued = await(
            [&] {
                for (int lock = 0; lock < locks_; ++lock) {
                    if (observer_.queue_length(lock) < 1 + kContenders) return false;
                }
                return true;
            },
            kMaxWait);
        if (!queued) throw std::runtime_error("the contenders did not queue up");
    }

    void start(std::vector<ActorProcess>& actors, std::vector<std::string> arguments, int actor, int first, int locks) {
        arguments.push_back("dir=" + dir_);
        arguments.push_back("actor=" + std::to_string(actor));
        arguments.push_back("first-lock=" + std::to_string(first));
        arguments.push_back("locks=" + std::to_string(locks));
        actors.emplace_back(board_, arguments).expect("connected", kMaxWait);
    }

    void begin_fault() {
        fault_at_ = stamp_now();
        fault_is_on_ = true;
        switch (options_.fault) {
            case Fault::black_hole: return cluster_.black_hole(server_);
            case Fault::follower_cut_off: return cluster_.cut_off(victim_);
            case Fault::leader_frozen:
            case Fault::leader_frozen_behind:
            case Fault::server_frozen: return cluster_.freeze(victim_);
            case Fault::holder_stopped:
                for (auto& holder : holders_) holder.send("freeze");
                return;
        }
    }

    void end_fault() {
        fault_is_on_ = false;
        switch (options_.fault) {
            case Fault::black_hole: return cluster_.pass(server_);
            case Fault::follower_cut_off: return cluster_.join(victim_);
            case Fault::leader_frozen:
            case Fault::leader_frozen_behind:
            case Fault::server_frozen: return cluster_.thaw(victim_);
            case Fault::holder_stopped:
                for (auto& holder : holders_) {
                    if (!holder.is_stopped()) throw std::runtime_error("a holder was not stopped");
                    holder.resume();
                }
                return;
        }
    }

    // Grants of every lock beside the first holder's.
    bool granted_again(int further) const {
        std::vector<int> grants(static_cast<std::size_t>(locks_), 0);
        for (const auto& hold : board_.holds()) ++grants[static_cast<std::size_t>(hold.lock)];
        return std::all_of(grants.begin(), grants.end(), [&](int count) { return count >= 1 + further; });
    }

    // When the leader was frozen, the holder's session may well survive (a new leader grants every session its whole
    // timeout again), and with it the nodes of the holds that its owner has given up by its own clock. Nobody is
    // granted anything then until the owner gives them back, as owners do.
    void await_next_grants(std::chrono::milliseconds patience) {
        if (await([&] { return granted_again(1); }, patience)) return;
        for (auto& holder : holders_) holder.send("release");
        if (!await([&] { return granted_again(1); }, kMaxWait))
            throw std::runtime_error("nobody else was granted the locks");
    }

    // Both sides write for a while, if both believe. A follower that stays cut off for longer than ten seconds gives up
    // and drops its clients; one that is joined before that delivers what has waited in its connections.
    void linger() {
        const bool long_enough_to_notice = options_.fault == Fault::follower_cut_off && !options_.brief;
        std::this_thread::sleep_for(long_enough_to_notice ? 8000ms : 500ms + random_ms(1000));
    }

    // The holder reaches a server again, and still does not hold.
    void await_return() {
        for (std::size_t i = 0; i < rules_.size(); ++i) {
            // The naive ones do not make new sessions.
            if (rules_[i] != Rule::library || holders_[i].wait_state("connected", kMaxWait)) continue;
            throw std::runtime_error("the holder did not get a connection again");
        }
        cluster_.wait_whole();
        std::this_thread::sleep_for(500ms);
    }

    void finish() {
        for (auto& holder : holders_) holder.send("release");
        for (int round = 2; round <= kContenders; ++round) {
            for (auto& contender : contenders_) contender.send("release");
            if (!await([&] { return granted_again(round); }, kMaxWait)) throw std::runtime_error("a waiter was lost");
        }
        for (auto& contender : contenders_) {
            if (contender.quit(kMaxWait) != 0) throw std::runtime_error("a contender did not end well");
        }
        for (auto& holder : holders_) {
            if (holder.quit(kMaxWait) != 0) throw std::runtime_error("a holder did not end well");
        }
    }

    int first_lock(std::size_t rule) const { return static_cast<int>(rule) * options_.holds; }

    FaultResult judge_all() {
        FaultResult result;
        for (std::size_t i = 0; i < rules_.size(); ++i) {
            auto history = board_.history(first_lock(i), options_.holds);
            history.sightings = observer_.sightings(first_lock(i), options_.holds);
            FaultResult::ForRule outcome;
            outcome.rule = rules_[i];
            JudgeOptions judging;
            judging.observer_lag = from_ms(10'000);
            outcome.verdict = judge(history, judging);
            for (const auto& hold : history.holds) {
                outcome.writes += hold.writes;
                if (hold.actor < 10 && hold.first_false_at != 0) {
                    outcome.believed.push_back(hold.first_false_at - fault_at_);
                }
            }
            note_next_grants(history, outcome);
            result.rules.push_back(std::move(outcome));
        }
        return result;
    }

    void note_next_grants(const History& history, FaultResult::ForRule& outcome) const {
        std::map<int, Stamp> first;
        for (const auto& hold : history.holds) {
            if (hold.actor < 10) continue;
            auto& at = first[hold.lock];
            if (at == 0 || hold.granted_at < at) at = hold.granted_at;
        }
        for (const auto& [lock, at] : first) outcome.granted.push_back(at - fault_at_);
    }

    Cluster& cluster_;
    const FaultOptions options_;
    std::mt19937_64& random_;
    Board board_;
    QueueObserver observer_;
    std::vector<Rule> rules_;
    int locks_ = 0;
    std::string dir_;
    int leader_ = 0, server_ = 0, victim_ = 0;
    std::vector<ActorProcess> holders_, contenders_;
    Stamp fault_at_ = 0;
    bool fault_is_on_ = false;
};

}  // namespace

const char* to_string(Fault fault) noexcept {
    switch (fault) {
        case Fault::black_hole: return "holder black-holed";
        case Fault::follower_cut_off: return "follower cut off";
        case Fault::leader_frozen: return "leader frozen";
        case Fault::leader_frozen_behind: return "leader frozen (holder on follower)";
        case Fault::server_frozen: return "holder's server frozen";
        case Fault::holder_stopped: return "holder stopped";
    }
    return "?";
}

const char* to_string(Rule rule) noexcept {
    switch (rule) {
        case Rule::library: return "library";
        case Rule::last_answer: return "last-answer";
        case Rule::suspended: return "suspended";
        case Rule::two_thirds: return "two-thirds";
    }
    return "?";
}

const char* to_string(Moment moment) noexcept {
    switch (moment) {
        case Moment::settled: return "settled";
        case Moment::first_instant: return "first instant";
        case Moment::after_pause: return "after a pause";
    }
    return "?";
}

FaultResult run_fault(Cluster& cluster, const FaultOptions& options, std::mt19937_64& random) {
    return Trial(cluster, options, random).run();
}

}  // namespace zkrecipes::chaos
