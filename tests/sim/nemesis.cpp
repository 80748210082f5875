#include "sim/nemesis.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/queue/node_name.hpp"
#include "session/lease/hold.hpp"

namespace zkrecipes::sim {

Nemesis::Nemesis(SimWorld& world, SimEnsemble& ensemble, const Plan& plan,
                 std::vector<std::unique_ptr<ClientProcess>>& processes, std::vector<std::string> paths, Judge& judge,
                 RunResult& result)
    : ensemble_(ensemble),
      world_(world),
      plan_(plan),
      processes_(processes),
      paths_(std::move(paths)),
      result_(result),
      doubt_attack_(ensemble),
      lease_attack_(ensemble, plan, paths_),
      late_callbacks_(ensemble, plan),
      impostor_(ensemble, plan, paths_, judge) {}

void Nemesis::start() {
    every(Fault::reset, 3 * kSecond, &Nemesis::reset);
    every(Fault::silent_server, 6 * kSecond, &Nemesis::silent_server);
    every(Fault::one_way, 6 * kSecond, &Nemesis::one_way);
    every(Fault::silent_all, 8 * kSecond, &Nemesis::silent_all);
    every(Fault::pause, 5 * kSecond, &Nemesis::pause);
    every(Fault::freeze_server, 10 * kSecond, &Nemesis::freeze);
    every(Fault::kill_server, 10 * kSecond, &Nemesis::kill);
    every(Fault::cut_servers, 8 * kSecond, &Nemesis::cut);
    every(Fault::isolate_server, 12 * kSecond, &Nemesis::isolate);
    every(Fault::no_quorum, 8 * plan_.timeout_ms * kMilli, &Nemesis::take_quorum_away);
    every(Fault::expire, 6 * kSecond, &Nemesis::expire);
    every(Fault::delete_node, 2 * kSecond, &Nemesis::delete_node);
    every(Fault::delete_all, 5 * kSecond, &Nemesis::delete_all);
    every(Fault::others_hands, 2 * kSecond, &Nemesis::others_hands);
    every(Fault::slow_disk, 6 * kSecond, &Nemesis::slow_disk);
    every(Fault::process_dies, 15 * kSecond, &Nemesis::death);
    every(Fault::early_close, 15 * kSecond, &Nemesis::early_close);
    every(Fault::doubt_attack, 2 * kSecond, &Nemesis::put_in_doubt);
    every(Fault::lease_attack, plan_.timeout_ms * 4 * kMilli, &Nemesis::attack_lease);
    every(Fault::late_callbacks, 4 * plan_.timeout_ms * kMilli, &Nemesis::delay_callbacks);
    every(Fault::impostor, kSecond, &Nemesis::take_a_place);
    every(Fault::end_of_numbers, 4 * kSecond, &Nemesis::put_far_number);
    auto& faults = ensemble_.faults();
    if (plan_.has(Fault::lost_messages)) faults.lose_request_one_in = faults.lose_reply_one_in = 30;
    if (plan_.has(Fault::stalls)) faults.stall_one_in = 30;
    if (plan_.has(Fault::pause_in_code)) world_.set_pause_in_code(300, plan_.timeout_ms * 2 * kMilli);
}

void Nemesis::stop() {
    stopped_ = true;
    doubt_attack_.stop();
    lease_attack_.stop();
    late_callbacks_.stop();
    impostor_.stop();
    auto& faults = ensemble_.faults();
    faults.lose_request_one_in = faults.lose_reply_one_in = 0;
    world_.set_pause_in_code(0, 0);
    world_.note(nullptr, "everything is healed");
    ensemble_.heal();
}

void Nemesis::every(Fault fault, SimTime mean, Act act) {
    if (!plan_.has(fault)) return;
    schedule(fault, mean, act, std::make_shared<Rng>(world_.fork(to_string(fault))));
}

void Nemesis::schedule(Fault fault, SimTime mean, Act act, std::shared_ptr<Rng> rng) {
    world_.in(rng->between(mean / 10, 2 * mean), nullptr, [this, fault, mean, act, rng] {
        if (stopped_) return;
        ++result_.faults;
        (this->*act)(*rng);
        schedule(fault, mean, act, rng);
    });
}

ClientProcess& Nemesis::victim(Rng& rng) { return *processes_[rng.below(processes_.size())]; }

int Nemesis::lead_or_any(Rng& rng) {
    SimServer* const leader = ensemble_.leader();
    return leader != nullptr && rng.one_in(2) ? leader->id() : any_server(rng);
}

SimTime Nemesis::span(Rng& rng) {
    const SimTime timeout = plan_.timeout_ms * kMilli;
    switch (rng.below(3)) {
        case 0: return rng.between(0, timeout / 6);
        case 1: return rng.between(timeout / 6, timeout);
        default: return rng.between(timeout, 3 * timeout);
    }
}

void Nemesis::reset(Rng& rng) { ensemble_.network().reset(victim(rng).actor(), -1); }

void Nemesis::silence(Rng& rng, bool to_server, bool from_server, bool all) {
    ClientProcess& process = victim(rng);
    const int chosen = any_server(rng);
    const SimTime duration = span(rng);
    for (int id = 0; id < ensemble_.size(); ++id) {
        if (!all && id != chosen) continue;
        ensemble_.network().block(process.actor(), id, to_server, from_server);
        world_.in(duration, nullptr, [this, &process, id] {
            if (!process.dead()) ensemble_.network().block(process.actor(), id, false, false);
        });
    }
    world_.note(&process.actor(), "cut off from servers", static_cast<std::uint64_t>(duration / kMilli));
}

void Nemesis::one_way(Rng& rng) {
    const bool to_server = rng.one_in(2);
    silence(rng, to_server, !to_server, rng.one_in(2));
}

void Nemesis::pause(Rng& rng) {
    ClientProcess& process = victim(rng);
    ++process.disturbances;
    process.actor().pause_for(span(rng));
}

void Nemesis::freeze(Rng& rng) {
    const int id = lead_or_any(rng);
    ensemble_.freeze(id, rng.one_in(3) ? rng.between(0, 15 * plan_.tick_ms * kMilli) : span(rng));
}

void Nemesis::kill(Rng& rng) {
    const int id = lead_or_any(rng);
    ensemble_.kill(id);
    world_.in(rng.between(0, 5 * kSecond), nullptr, [this, id] { ensemble_.restart(id); });
}

void Nemesis::cut(Rng& rng) {
    const int a = lead_or_any(rng);
    const int b = any_server(rng);
    if (a == b) return;
    ensemble_.cut(a, b, true);
    world_.in(span(rng), nullptr, [this, a, b] {
        if (ensemble_.is_cut(a, b)) ensemble_.cut(a, b, false);
    });
}

void Nemesis::isolate(Rng& rng) {
    const int id = lead_or_any(rng);
    ensemble_.isolate(id, span(rng) + span(rng));
}

/// A session does not end while nobody leads, and gets its whole timeout again from the next leader. Its client gives
/// it up after four timeouts, by its own clock, and begins another one: so both are there when the servers are back.
void Nemesis::take_quorum_away(Rng& rng) {
    const SimTime duration = rng.between(3 * plan_.timeout_ms, 9 * plan_.timeout_ms) * kMilli;
    // What is frozen does not hear that everything is healed.
    if (ensemble_.size() == 1) return ensemble_.freeze(0, std::min(duration, plan_.trouble - world_.now()));
    for (int a = 0; a < ensemble_.size(); ++a) {
        for (int b = a + 1; b < ensemble_.size(); ++b) ensemble_.cut(a, b, true);
    }
    world_.in(duration, nullptr, [this] {
        for (int a = 0; a < ensemble_.size(); ++a) {
            for (int b = a + 1; b < ensemble_.size(); ++b) {
                if (ensemble_.is_cut(a, b)) ensemble_.cut(a, b, false);
            }
        }
    });
}

void Nemesis::expire(Rng& rng) {
    ClientProcess& process = victim(rng);
    if (process.dead() || process.closing) return;
    const std::int64_t session = process.session().info().session_id;
    if (session == 0) return;
    ensemble_.expire(session);
}

void Nemesis::delete_node(Rng& rng) {
    const std::string& path = paths_[rng.below(paths_.size())];
    const Node* const directory = ensemble_.committed().find(path);
    if (directory == nullptr || directory->children.empty()) return;
    auto child = directory->children.begin();
    std::advance(child, static_cast<std::ptrdiff_t>(rng.below(directory->children.size())));
    world_.note(nullptr, "an operator deletes a node");
    ensemble_.remove(path + "/" + *child);
}

void Nemesis::delete_all(Rng& rng) {
    const std::string& path = paths_[rng.below(paths_.size())];
    const Node* const directory = ensemble_.committed().find(path);
    if (directory == nullptr) return;
    world_.note(nullptr, "an operator deletes a directory");
    const auto children = directory->children;
    for (const std::string& child : children) ensemble_.remove(path + "/" + child);
    ensemble_.remove(path);
}

void Nemesis::others_hands(Rng& rng) {
    const std::string& path = paths_[rng.below(paths_.size())];
    const Node* const directory = ensemble_.committed().find(path);
    if (directory == nullptr) return;
    // Among leases every child is one, whatever its name: as for Curator.
    if (rng.one_in(4) && !path.ends_with("/leases")) {
        static const char* const kNames[] = {"notes", "notes-0000000000", "0000000001", "lock", "__READ__", "x-lock-1"};
        return ensemble_.make(path + "/" + kNames[rng.below(std::size(kNames))]);
    }
    if (directory->children.empty()) return;
    auto child = directory->children.begin();
    std::advance(child, static_cast<std::ptrdiff_t>(rng.below(directory->children.size())));
    ensemble_.write(path + "/" + *child,
                    rng.one_in(2) ? "under maintenance" : std::string(internal::kRevocationRequest));
}

/// A node that nobody takes away, with a number that comes long after all that are still handed out.
void Nemesis::put_far_number(Rng& rng) {
    const std::string& path = paths_[rng.below(paths_.size())];
    const Node* const directory = ensemble_.committed().find(path);
    if (directory == nullptr || path.ends_with("/leases")) return;
    const bool near_limit =
        directory->cversion > internal::kSequenceLimit - 1000 && directory->cversion < internal::kSequenceLimit + 1000;
    if (near_limit) ensemble_.make(path + "/_c_99999999-9999-4999-8999-999999999999-lock--2147483000");
}

void Nemesis::slow_disk(Rng& rng) {
    SimServer& server = ensemble_.server(any_server(rng));
    server.fsync_most = rng.between(50, 1000) * kMilli;
    world_.in(span(rng), nullptr, [&server] { server.fsync_most = kDiskUsual; });
}

void Nemesis::death(Rng& rng) {
    int alive = 0;
    for (const auto& process : processes_) alive += process->dead() ? 0 : 1;
    ClientProcess& process = victim(rng);
    if (alive <= 1 || process.dead()) return;
    process.die();
    // The world cannot see it any more. What is left of it here comes to an end like a session that is closed.
    if (std::exchange(process.closing, true)) return;
    world_.spawn(&process.actor(), "ends", [&process] { process.session().close(); });
}

void Nemesis::delay_callbacks(Rng& rng) { late_callbacks_.begin(victim(rng), rng); }

void Nemesis::put_in_doubt(Rng& rng) { doubt_attack_.begin(victim(rng), rng); }

/// Whose node is the first in the queue. Null: there is none.
ClientProcess* Nemesis::holder_of(const std::string& path) {
    const Node* const directory = ensemble_.committed().find(path);
    if (directory == nullptr || directory->children.empty()) return nullptr;
    const SessionId owner = ensemble_.committed().find(path + "/" + first_in_queue(directory->children))->owner;
    for (const auto& process : processes_) {
        if (owner != 0 && process->session().info().session_id == owner) return process.get();
    }
    return nullptr;
}

void Nemesis::attack_lease(Rng& rng) {
    ClientProcess* const holder = rng.one_in(4) ? nullptr : holder_of(paths_.front());
    ClientProcess& process = holder != nullptr ? *holder : victim(rng);
    if (!process.dead() && !process.closing) lease_attack_.begin(process, rng);
}

void Nemesis::early_close(Rng& rng) {
    ClientProcess& process = victim(rng);
    if (process.dead() || std::exchange(process.closing, true)) return;
    world_.spawn(&process.actor(), "closes its session", [&process] { process.session().close(); });
}

}  // namespace zkrecipes::sim
