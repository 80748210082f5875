#include <algorithm>
#include <atomic>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/semaphore_mutex.hpp>
#include <zkrecipes/session.hpp>

#include "chaos/actor_roles.hpp"
#include "chaos/hold_set.hpp"
#include "chaos/plan.hpp"
#include "chaos/register_server.hpp"

namespace zkrecipes::chaos {

namespace {

using std::chrono::milliseconds;

/// One lock of what a grant stands for.
struct Part {
    int lock = 0;
    HoldMode mode = HoldMode::exclusive;
};

/// One way to take something. A grant of several leases has one part and several nodes.
struct Way {
    std::vector<Part> parts;
    std::function<Grant(Deadline)> take;
};

/// Some sessions hand a lock over among their threads, some keep it, some do both or neither.
LockOptions local_terms(const ActorOptions& actor, int index) {
    LockOptions terms;
    const int kind = actor.actor() + index;
    if (kind % 2 == 0) terms.local_handovers = 3;
    if (kind / 2 % 2 == 0) terms.keep_for = milliseconds(300);
    return terms;
}

/// The ways of one recipe. The objects that they use live as long as they do.
std::vector<Way> ways_of(Recipe recipe, Session& session, const ActorOptions& options) {
    std::vector<Way> ways;
    const auto path = [&](int index) { return options.lock_path(lock_of(recipe, index)); };
    const auto add = [&](int index, HoldMode mode, auto object, auto acquire) {
        auto shared = std::make_shared<decltype(object)>(std::move(object));
        ways.push_back({{{lock_of(recipe, index), mode}},
                        [shared, acquire](Deadline deadline) { return acquire(*shared, deadline); }});
    };
    const auto plainly = [](auto& object, Deadline deadline) { return object.try_acquire_until(deadline); };
    const auto as_share = [](auto& object, Deadline deadline) { return object.try_acquire_shared_until(deadline); };
    const auto add_set = [&](std::vector<Part> parts) {
        std::vector<MultiLock::Member> members;
        for (const auto& part : parts) {
            auto as = MultiLock::As::mutex;
            if (kind_of(part.lock) == LockKind::shared)
                as = part.mode == HoldMode::shared ? MultiLock::As::shared : MultiLock::As::exclusive;
            members.push_back({options.lock_path(part.lock), as});
        }
        auto set = std::make_shared<MultiLock>(session, members);
        ways.push_back({std::move(parts), [set](Deadline deadline) { return set->try_acquire_until(deadline); }});
    };
    switch (recipe) {
        case Recipe::exclusive_mutex:
            for (int i = 0; i < kLocksEach; ++i) {
                add(i, HoldMode::exclusive, ExclusiveMutex(session, path(i), local_terms(options, i)), plainly);
            }
            break;
        case Recipe::read_write_lock:
            for (int i = 0; i < kLocksEach; ++i) {
                const auto terms = local_terms(options, i);
                add(i, HoldMode::exclusive, ReadWriteLock(session, path(i), terms), plainly);
                add(i, HoldMode::shared, ReadWriteLock(session, path(i), terms), as_share);
            }
            break;
        case Recipe::semaphore:
            for (int i = 0; i < kLocksEach; ++i) {
                for (int count = 1; count <= 2; ++count) {
                    add(i, HoldMode::lease, Semaphore(session, path(i), kLeases),
                        [count](Semaphore& semaphore, Deadline deadline) {
                            return semaphore.try_acquire_until(count, deadline);
                        });
                }
            }
            break;
        case Recipe::semaphore_mutex:
            for (int i = 0; i < kLocksEach; ++i) add(i, HoldMode::exclusive, SemaphoreMutex(session, path(i)), plainly);
            break;
        case Recipe::multi_lock: {
            const auto part = [&](int index, HoldMode mode = HoldMode::exclusive) {
                return Part{lock_of(recipe, index), mode};
            };
            add_set({part(0), part(1)});
            add_set({part(1), part(2)});
            add_set({part(2, HoldMode::shared), part(0)});
            // Others who use single members know nothing of the sets.
            add(1, HoldMode::exclusive, ExclusiveMutex(session, path(1)), plainly);
            add(2, HoldMode::shared, ReadWriteLock(session, path(2)), as_share);
            break;
        }
        case Recipe::leader_election:
            for (int i = 0; i < kLocksEach; ++i) {
                ElectionOptions election;
                if (i == 2) election.layout = ElectionLayout::selector;
                add(i, HoldMode::exclusive, LeaderElection(session, path(i), election),
                    [](LeaderElection& object, Deadline deadline) { return object.try_campaign_until(deadline); });
            }
            break;
        case Recipe::zklock: break;  // actor_zklock.cpp
    }
    return ways;
}

/// One session, and for each recipe a thread, or several, that takes and gives back whatever it finds.
class CrowdRole {
public:
    CrowdRole(const ActorOptions& options, Board& board, Reply& reply)
        : options_(options), board_(board), reply_(reply), holds_(board, options.actor(), hold_options()) {}

    int run() {
        SessionOptions chosen;
        chosen.hosts = options_.hosts();
        chosen.timeout = options_.timeout();
        chosen.server_tick = milliseconds(options_.number("tick-ms"));
        Session session(std::move(chosen));
        if (!session.wait_connected(std::chrono::seconds(120))) {
            reply_.say("error not connected after 120 s");
            return 1;
        }
        reply_.say("connected");
        std::vector<std::jthread> threads;
        std::istringstream names(options_.text("recipes"));
        for (std::string name; std::getline(names, name, ',');) {
            const Recipe recipe = *recipe_named(name);
            for (int i = 0; i < threads_of(recipe); ++i) {
                threads.emplace_back([this, &session, recipe, i] { work(session, recipe, i); });
            }
        }
        std::string command;
        while (std::getline(std::cin, command) && command != "finish" && command != "quit") {
            if (command != "freeze") continue;
            holds_.stop_process();
            reply_.say("resumed");
        }
        finish_.request_stop();
        threads.clear();
        session.close();
        reply_.say("done");
        return failed_ ? 1 : 0;
    }

private:
    static HoldSet::Options hold_options() {
        HoldSet::Options options;
        options.poll_every = std::chrono::microseconds(3000);  // there are many of us
        options.think = milliseconds(0);
        return options;
    }

    /// Where threads of one session get a lock from each other, there are several.
    static int threads_of(Recipe recipe) {
        return recipe == Recipe::exclusive_mutex || recipe == Recipe::read_write_lock ? 3 : 1;
    }

    void work(Session& session, Recipe recipe, int thread) {
        try {
            std::mt19937_64 random(static_cast<std::uint64_t>(options_.number("seed")) * 64 +
                                   static_cast<std::uint64_t>(recipe) + static_cast<std::uint64_t>(kRecipes * thread));
            const auto ways = ways_of(recipe, session, options_);
            RegisterClient fenced(options_.text("register"));
            while (!finish_.stop_requested()) {
                const bool gives_up = random() % 8 == 0;
                cycle(ways[random() % ways.size()], gives_up ? milliseconds(random() % 400) : milliseconds(20'000),
                      fenced, random);
                std::this_thread::sleep_for(milliseconds(random() % 40));
            }
            for (const auto& way : ways) {
                if (!cycle(way, std::chrono::seconds(90), fenced, random)) {
                    reply_.say("starved " + std::to_string(way.parts.front().lock));
                    failed_ = true;
                }
            }
        } catch (const std::exception& exception) {
            reply_.say(std::string("error ") + to_string(recipe) + ": " + exception.what());
            failed_ = true;
        }
    }

    /// False: not granted in time.
    bool cycle(const Way& way, Deadline deadline, RegisterClient& fenced, std::mt19937_64& random) {
        auto grant = std::make_shared<Grant>(way.take(deadline));
        if (!*grant) return false;
        const Stamp now = stamp_now();
        if (!grant->held()) return true;  // stopped or starved before it could be looked at: nobody ever believed it
        const auto entries = note(way, grant, now);
        const std::int64_t token = grant->token();
        std::vector<std::int64_t> plain;
        std::vector<std::int64_t> guarded;
        for (const auto& part : way.parts) {
            plain.push_back(board_.read_counter(part.lock));
            guarded.push_back(part.mode == HoldMode::lease    ? -1
                              : part.mode == HoldMode::shared ? fenced.read_shared(part.lock, token)
                                                              : fenced.read(part.lock, token));
        }
        // Mostly short, so that there are many; some long enough to be lost by what happens meanwhile.
        std::this_thread::sleep_for(milliseconds(random() % 50 == 0 ? 300 + random() % 6000 : random() % 12));
        stay_in_trouble(way, *grant);
        for (std::size_t i = 0; i < way.parts.size(); ++i) {
            if (way.parts[i].mode != HoldMode::exclusive) continue;
            // The fenced one without a look at the clock: that is what the fence is for.
            if (guarded[i] >= 0) {
                HoldSet::note_fenced(*entries[i], fenced.write(way.parts[i].lock, token, guarded[i] + 1));
            } else {
                HoldSet::note_fenced(*entries[i], false);
            }
            holds_.write(*entries[i], plain[i] + 1);
        }
        holds_.release(entries);
        return true;
    }

    // Who releases in time proves little. In trouble everybody holds on until it is over or the hold is lost, and is
    // still there, and about to write, when others hold; and some locks are kept so that trouble meets a hold.
    void stay_in_trouble(const Way& way, const Grant& grant) const {
        const auto is_kept = [&] {
            return std::any_of(way.parts.begin(), way.parts.end(),
                               [&](const Part& part) { return board_.is_to_be_kept(part.lock); });
        };
        const Stamp enough = stamp_now() + from_ms(10 * options_.timeout().count());
        while (stamp_now() < enough && grant.held() && (is_kept() || grant.remaining_lease() < options_.timeout() / 4))
            std::this_thread::sleep_for(milliseconds(5));
        if (!grant.held()) std::this_thread::sleep_for(options_.timeout());
    }

    std::vector<std::shared_ptr<HoldSet::Entry>> note(const Way& way, const std::shared_ptr<Grant>& grant, Stamp now) {
        const Belief belief{[grant] { return grant->held(); }, [grant] { grant->release(); }, grant->lost()};
        const auto nodes = grant->nodes();
        std::vector<std::shared_ptr<HoldSet::Entry>> entries;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const Part& part = way.parts[std::min(i, way.parts.size() - 1)];
            const std::string node = nodes[i].substr(nodes[i].rfind('/') + 1);
            entries.push_back(holds_.add(part.lock, now, grant->token(), node, belief, part.mode, grant->session_id(),
                                         grant->handovers()));
        }
        return entries;
    }

    const ActorOptions& options_;
    Board& board_;
    Reply& reply_;
    HoldSet holds_;
    std::stop_source finish_;
    std::atomic<bool> failed_{false};
};

}  // namespace

int run_crowd(const ActorOptions& options, Board& board, Reply& reply) {
    return CrowdRole(options, board, reply).run();
}

}  // namespace zkrecipes::chaos
