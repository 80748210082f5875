#include <algorithm>
#include <csignal>
#include <numeric>
#include <thread>
#include <zkrecipes/testenv/raw_client.hpp>

#include "chaos/stage.hpp"

namespace zkrecipes::chaos {

namespace {

using Heal = Nemesis::Heal;
using std::chrono::milliseconds;
using testenv::Direction;

// ---- servers -----------------------------------------------------------------------------------------------------

Heal killed(Stage& stage, int member) {
    stage.arena.ensemble().kill(member);
    return [&stage, member] { stage.arena.ensemble().restart(member); };
}
Heal kill_leader(Stage& stage, milliseconds) { return killed(stage, stage.arena.leader()); }
Heal kill_follower(Stage& stage, milliseconds) { return killed(stage, stage.arena.follower()); }

Heal frozen(Stage& stage, int member) {
    stage.arena.ensemble().freeze(member);
    return [&stage, member] { stage.arena.ensemble().thaw(member); };
}
Heal freeze_leader(Stage& stage, milliseconds) { return frozen(stage, stage.arena.leader()); }
Heal freeze_follower(Stage& stage, milliseconds) { return frozen(stage, stage.arena.follower()); }

// One after the other, with a leader all the time but for the elections.
Heal rolling_restart(Stage& stage, milliseconds) {
    for (int i = 0; i < stage.arena.size(); ++i) {
        stage.arena.ensemble().stop(i);
        std::this_thread::sleep_for(milliseconds(stage.any(500)));
        stage.arena.ensemble().restart(i);
        stage.arena.wait_whole();
    }
    return [] {};
}

Heal cut_off(Stage& stage, int member) {
    stage.arena.ensemble().isolate(member);
    return [&stage, member] { stage.arena.ensemble().heal(member); };
}
Heal isolate_leader(Stage& stage, milliseconds) { return cut_off(stage, stage.arena.leader()); }

// The case in which clients that trust any answer overlap: the naive ones are there, too, when it lasts long enough.
Heal isolate_follower(Stage& stage, milliseconds span) {
    const int member = stage.arena.follower();
    const bool with_control = stage.control != nullptr && span > stage.timeout + stage.timeout / 2;
    if (with_control) stage.control->begin(member);
    auto join = cut_off(stage, member);
    return [&stage, with_control, join] {
        join();
        if (with_control) stage.control->end();
    };
}

Heal split(Stage& stage, milliseconds) {
    std::vector<int> members(static_cast<std::size_t>(stage.arena.size()));
    std::iota(members.begin(), members.end(), 0);
    std::shuffle(members.begin(), members.end(), stage.random);
    const auto minority = members.begin() + stage.arena.size() / 2;
    stage.arena.ensemble().partition({members.begin(), minority}, {minority, members.end()});
    return [&stage] { stage.arena.ensemble().heal(); };
}

Heal one_way_servers(Stage& stage, milliseconds) {
    const int leader = stage.arena.leader();
    const int follower = stage.arena.follower();
    stage.any(2) == 0 ? stage.arena.ensemble().cut_link(leader, follower)
                      : stage.arena.ensemble().cut_link(follower, leader);
    return [&stage] { stage.arena.ensemble().heal(); };
}

Heal full_disk(Stage& stage, milliseconds) {
    const int member = stage.any(2) == 0 ? stage.arena.leader() : stage.arena.follower();
    auto& server = stage.arena.ensemble().member(member);
    const auto before = server.log().size();
    stage.arena.fill_disk(member);
    // Its thread that writes ends; the rest of it goes on as if it were a server, until somebody starts it again.
    return [&stage, &server, member, before] {
        const bool met = server.log().find("No space left on device", before) != std::string::npos;
        stage.arena.free_disk(member);
        stage.arena.ensemble().restart(member);
        if (!met) throw testenv::Error("the server did not need more room in this time");
    };
}

Heal clock_jump(Stage& stage, milliseconds) {
    const auto jump = [&stage] { return std::chrono::seconds(stage.any(2'000'000) - 1'000'000); };  // eleven days
    const int member = stage.any(stage.arena.size());
    Party& party = stage.any_party();
    set_clock(stage.arena.clock_of(member), jump());
    set_clock(party.clock, jump());
    return [&stage, &party, member] {
        set_clock(stage.arena.clock_of(member), std::chrono::seconds(0));
        set_clock(party.clock, std::chrono::seconds(0));
    };
}

// ---- the way between clients and servers ---------------------------------------------------------------------------

// Some of the ways of some of the clients, at least one; often all ways of a client.
std::vector<testenv::Gate*> some_ways(Stage& stage) {
    std::vector<testenv::Gate*> ways;
    const int clients = 1 + stage.any(static_cast<int>(stage.parties.size()));
    for (int i = 0; i < clients; ++i) {
        Party& party = stage.any_party();
        const bool all = stage.any(2) == 0;
        const int one = stage.any(static_cast<int>(party.gates.size()));
        for (int j = 0; j < static_cast<int>(party.gates.size()); ++j) {
            if (all || j == one || stage.any(3) == 0) ways.push_back(&party.gates[static_cast<std::size_t>(j)]);
        }
    }
    return ways;
}

Heal let_pass(const std::vector<testenv::Gate*>& ways) {
    return [ways] {
        for (auto* way : ways) way->pass();
    };
}

Heal cut_clients(Stage& stage, milliseconds) {
    const auto ways = some_ways(stage);
    for (auto* way : ways) way->blackhole();
    return let_pass(ways);
}

Heal one_way_clients(Stage& stage, milliseconds) {
    const auto ways = some_ways(stage);
    for (auto* way : ways) way->blackhole(stage.any(2) == 0 ? Direction::to_server : Direction::to_client);
    return let_pass(ways);
}

Heal reset(Stage& stage, milliseconds span) {
    const auto ways = some_ways(stage);
    for (int times = 1 + stage.any(4); times > 0; --times) {
        for (auto* way : ways) way->reset_all();
        std::this_thread::sleep_for(std::min(span / 4, milliseconds(stage.any(400))));
    }
    return [] {};
}

Heal delay(Stage& stage, milliseconds) {
    const auto ways = some_ways(stage);
    for (auto* way : ways) way->delay(Direction::both, milliseconds(5 + stage.any(600)));
    return let_pass(ways);
}

// One answer of a server is held back, with all behind it but those to pings, which come as if all were well.
Heal slow_replies(Stage& stage, milliseconds) {
    std::vector<testenv::Fault> faults;
    for (auto* way : some_ways(stage)) faults.push_back(way->hold_reply(testenv::Match::any().nth(1 + stage.any(30))));
    const bool drop = stage.any(3) == 0;  // or the connection ends instead
    return [faults, drop] {
        for (const auto& fault : faults) {
            fault.cancel();
            if (fault.reached()) drop ? fault.drop() : fault.release();
        }
    };
}

// ---- clients -------------------------------------------------------------------------------------------------------

// Where no server answers nobody knows whether it has happened. `act` says whether there was anything to take away.
template <class Act>
bool by_force(Stage& stage, const Excuse& excuse, Act act) {
    stage.excuses.push_back(excuse);
    stage.excuses.back().surely = false;
    stage.excuses.back().surely = act();
    stage.excuses.back().sure_at = stamp_now();
    return stage.excuses.back().surely;
}

Heal expire(Stage& stage, milliseconds) {
    for (int tries = 0; tries < 20; ++tries) {
        Party& party = stage.any_party();
        for (auto& gate : party.gates) {
            const auto sessions = gate.sessions();
            if (gate.connection_count() == 0) continue;
            // A gate knows also those that are over (each zklock had one of its own), and while clients reconnect the
            // latest that it knows need not be the one that lives.
            const auto some = std::min<std::size_t>(sessions.size(), 3);
            for (auto session = sessions.rbegin(); session != sessions.rbegin() + some; ++session) {
                const Excuse excuse{-1, "", party.actor, stamp_now(), *session};
                if (by_force(stage, excuse, [&] { return gate.expire(*session); })) return [] {};
                stage.excuses.pop_back();  // nothing was ended
            }
        }
    }
    throw testenv::Error("no client has a session that could be ended");
}

Heal stop_clients(Stage& stage, milliseconds) {
    Party& party = stage.any_party();
    if (party.zklock) {
        party.process->send("freeze");
        party.process->expect("frozen", std::chrono::seconds(30));
        return [&party] { party.process->send("thaw"); };
    }
    // It stops itself, and not between held() and the write after it: guarantees, L1, assumption 4.
    party.process->send("freeze");
    if (!await([&] { return party.process->is_stopped(); }, std::chrono::seconds(30)))
        throw testenv::Error("a client does not stop");
    return [&party] {
        party.process->resume();
        party.process->expect("resumed", std::chrono::seconds(30));
    };
}

Heal kill_clients(Stage& stage, milliseconds) {
    Party& party = stage.any_party();
    stage.killed.insert(party.actor);
    kill(party.process->pid(), SIGKILL);
    return [&stage, &party] { stage.restart(party); };
}

// Any node of any queue, be it a holder's or a waiter's.
void remove_one(Stage& stage, testenv::RawClient& client) {
    const Recipe recipe = stage.recipes[static_cast<std::size_t>(stage.any(static_cast<int>(stage.recipes.size())))];
    const int lock = lock_of(recipe, stage.any(kLocksEach));
    std::string path = stage.dir + "/" + std::to_string(lock);
    auto names = client.children(path);
    while (names && !names->empty()) {
        const std::string name = (*names)[static_cast<std::size_t>(stage.any(static_cast<int>(names->size())))];
        path += "/" + name;
        if (name.back() >= '0' && name.back() <= '9') {
            by_force(stage, {lock, name, -1, stamp_now(), 0}, [&] { return client.remove(path); });
            return;
        }
        names = client.children(path);  // a semaphore has folders
    }
}

Heal operator_deletes(Stage& stage, milliseconds span) {
    testenv::RawClient client(stage.arena.ensemble().connect_string());
    const Stamp until = stamp_now() + from_ms(std::min<long>(span.count(), 5000));
    while (stamp_now() < until) {
        remove_one(stage, client);
        std::this_thread::sleep_for(milliseconds(stage.any(200)));
    }
    return [] {};
}

Heal nothing(Stage&, milliseconds) {
    return [] {};
}

}  // namespace

const std::vector<Nemesis>& nemeses() {
    static const std::vector<Nemesis> all = {
        {"kill-leader", "kill -9 for the leader, started again later", true, kill_leader},
        {"kill-follower", "the same for a follower", true, kill_follower},
        {"freeze-leader", "SIGSTOP for the leader", true, freeze_leader},
        {"freeze-follower", "the same for a follower", true, freeze_follower},
        {"restart", "all servers in turn, with SIGTERM", true, rolling_restart},
        {"isolate-leader", "the leader hears its clients and no other server", true, isolate_leader},
        {"isolate-follower", "the same for a follower", true, isolate_follower},
        {"split", "half of the servers, rounded down, from the others", true, split},
        {"one-way-servers", "leader and follower hear each other in one direction only", true, one_way_servers},
        {"full-disk", "no room for the transactions of one server", true, full_disk},
        {"clock-jump", "the wall clocks of a server and of a client go wrong by days", true, clock_jump},
        {"cut-clients", "nothing passes between some clients and some servers", false, cut_clients},
        {"one-way-clients", "the same in one direction", false, one_way_clients},
        {"reset", "connections of clients are reset", false, reset},
        {"delay", "up to 0.6 s more in both directions", false, delay},
        {"slow-replies", "answers are held back while pings are answered", false, slow_replies},
        {"expire", "the session of a client is ended", false, expire},
        {"stop-clients", "SIGSTOP for a client, or for zklock without its command", false, stop_clients},
        {"kill-clients", "kill -9 for a client", false, kill_clients},
        {"delete", "an operator deletes nodes of queues", false, operator_deletes},
        {"reaper", "the servers remove empty containers every 10 ms, all the time", false, nothing},
    };
    return all;
}

const Nemesis* nemesis_named(const std::string& name) {
    const auto& all = nemeses();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Nemesis& nemesis) { return name == nemesis.name; });
    return found == all.end() ? nullptr : &*found;
}

}  // namespace zkrecipes::chaos
