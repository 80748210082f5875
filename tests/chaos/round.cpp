#include "chaos/round.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "chaos/server_views.hpp"

namespace zkrecipes::chaos {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kControlActor = 1'000'000;

std::string names_of(const std::vector<Recipe>& recipes) {
    std::string names;
    for (const Recipe recipe : recipes) {
        if (recipe != Recipe::zklock) names += (names.empty() ? "" : ",") + std::string(to_string(recipe));
    }
    return names;
}

bool has(const std::vector<Recipe>& recipes, Recipe recipe) {
    return std::find(recipes.begin(), recipes.end(), recipe) != recipes.end();
}

/// Processes that were started with this word.
std::vector<std::string> processes_with(const std::string& word) {
    std::vector<std::string> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
        std::ifstream file(entry.path() / "cmdline");
        std::string line(65'536, '\0');
        file.read(line.data(), static_cast<std::streamsize>(line.size()));  // does not throw where the process ends
        line.resize(static_cast<std::size_t>(file.gcount()));
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") == std::string::npos && line.find(word) != std::string::npos)
            found.push_back("process " + name);
    }
    return found;
}

}  // namespace

Round::Round(Arena& arena, const RoundOptions& options)
    : arena_(arena),
      options_(options),
      dir_("/chaos/" + std::to_string(options.number)),
      tag_(std::to_string(getpid()) + "-" + std::to_string(options.number) + "-" + std::to_string(options.seed)),
      random_(options.seed),
      board_(Board::create()),
      control_(board_, arena, dir_, kControlActor),
      stage_{arena,
             parties_,
             random_,
             options.recipes,
             dir_,
             options.timeout,
             result_.record.excuses,
             result_.record.killed,
             [this](Party& party) { start(party); },
             options.control ? &control_ : nullptr} {}

Round::~Round() = default;

void Round::start(Party& party) {
    party.process.reset();  // first: it is dead, or is to be
    party.actor = next_actor_++;
    if (party.zklock) result_.record.commands.insert(party.actor);
    std::string hosts;
    for (const auto& gate : party.gates) hosts += (hosts.empty() ? "" : ",") + gate.connect_string();
    if (arena_.has_clocks()) {
        setenv("LD_PRELOAD", CHAOS_CLOCK_SHIM, 1);
        setenv("ZKRECIPES_CHAOS_CLOCK", party.clock.c_str(), 1);
    }
    party.process = std::make_unique<ActorProcess>(
        board_, std::vector<std::string>{
                    party.zklock ? "role=zklock" : "role=crowd", "hosts=" + hosts, "dir=" + dir_,
                    "timeout-ms=" + std::to_string(options_.timeout.count()), "actor=" + std::to_string(party.actor),
                    // Some are told the servers' tick, which makes leases longer.
                    "tick-ms=" + std::to_string(party.actor % 2 == 0 ? 0 : Arena::kTick.count()),
                    "recipes=" + names_of(options_.recipes), "register=" + register_.name(),
                    "seed=" + std::to_string(random_() % 1'000'000), "zklock=" CHAOS_ZKLOCK, "tag=" + tag_,
                    "board=/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(board_.descriptor())});
    unsetenv("LD_PRELOAD");
    unsetenv("ZKRECIPES_CHAOS_CLOCK");
}

RoundResult Round::run() {
    arena_.wait_whole();
    const int clients = names_of(options_.recipes).empty() ? 0 : options_.clients;
    const int zklocks = has(options_.recipes, Recipe::zklock) ? options_.zklocks : 0;
    parties_.resize(static_cast<std::size_t>(clients + zklocks));
    for (int i = 0; i < clients + zklocks; ++i) {
        Party& party = parties_[static_cast<std::size_t>(i)];
        party.zklock = i >= clients;
        party.clock = scratch_ / ("clock-" + std::to_string(i));
        set_clock(party.clock, seconds(0));
        party.gates = arena_.make_gates();
        start(party);
    }
    for (auto& party : parties_) party.process->expect("connected", seconds(120));
    if (!await_grants_since(0)) result_.stuck.push_back({-1, "not every lock was granted in the beginning"});
    for (const auto& group : options_.faults) {
        if (board_.used() > Board::kHolds * 3 / 4) break;
        meet(group);
    }
    finish();
    look_for_leftovers();
    judge();
    return std::move(result_);
}

void Round::meet(const std::vector<const Nemesis*>& group) {
    // A third of the locks, so that the rest goes on changing hands.
    std::set<int> kept;
    const int third = stage_.any(kLocksEach);
    for (const Recipe recipe : options_.recipes) kept.insert(lock_of(recipe, third));
    board_.ask_to_keep(kept);
    wait_a_little(options_.brief ? 500 : 1500);
    const milliseconds span = options_.brief       ? options_.timeout + milliseconds(1200)
                              : stage_.any(3) == 0 ? milliseconds(300 + stage_.any(2500))
                                                   : options_.timeout + milliseconds(2200 + stage_.any(1800));
    std::vector<std::pair<std::size_t, Nemesis::Heal>> heals;
    for (const auto* nemesis : group) {
        Met met;
        met.nemesis = nemesis->name;
        met.begun = stamp_now();
        result_.met.push_back(met);
        try {
            heals.emplace_back(result_.met.size() - 1, nemesis->begin(stage_, span));
        } catch (const std::exception& error) {
            result_.met.back().failed = error.what();
        }
    }
    std::this_thread::sleep_for(span);
    while (!heals.empty()) {
        const auto [index, heal] = heals.back();
        heals.pop_back();
        try {
            heal();
        } catch (const std::exception& error) {
            result_.met[index].failed = error.what();
        }
        result_.met[index].healed = stamp_now();
    }
    board_.ask_to_keep({});
    arena_.wait_whole();
    const Stamp well = stamp_now();
    const bool granted = await_grants_since(well);
    for (std::size_t i = result_.met.size() - group.size(); i < result_.met.size(); ++i) {
        if (granted) result_.met[i].recovered = stamp_now();
    }
}

void Round::wait_a_little(int at_most_ms) { std::this_thread::sleep_for(milliseconds(100 + stage_.any(at_most_ms))); }

bool Round::await_grants_since(Stamp since) {
    std::set<int> missing;
    for (const Recipe recipe : options_.recipes) {
        for (int i = 0; i < kLocksEach; ++i) missing.insert(lock_of(recipe, i));
    }
    const Stamp until = stamp_now() + from_ms(options_.patience.count());
    while (!missing.empty() && stamp_now() < until) {
        std::this_thread::sleep_for(milliseconds(100));
        for (const auto& hold : board_.holds()) {
            if (hold.granted_at > since) missing.erase(hold.lock);
        }
    }
    for (const int lock : missing) {
        const std::string after = result_.met.empty() ? "the start" : result_.met.back().nemesis;
        result_.stuck.push_back({lock, "lock " + std::to_string(lock) + " (" + to_string(recipe_of(lock)) +
                                           ") was not granted in time after " + after});
    }
    return missing.empty();
}

void Round::finish() {
    for (auto& party : parties_) party.process->send("finish");
    for (auto& party : parties_) {
        const int code = party.process->wait(seconds(300));
        if (code == 0) continue;
        const std::string who = (party.zklock ? "zklock, actor " : "client, actor ") + std::to_string(party.actor);
        bool said = false;
        for (const auto& line : party.process->lines()) {
            const bool starved = line.rfind("starved", 0) == 0;
            if (!starved && line.rfind("error", 0) != 0) continue;
            said = true;
            if (starved) {
                result_.stuck.push_back({std::atoi(line.c_str() + std::strlen("starved ")), who + ": " + line});
            } else {
                result_.errors.push_back(who + ": " + line);
            }
        }
        if (!said)
            result_.stuck.push_back({-1, who + " did not end in time, or ended with code " + std::to_string(code)});
    }
}

void Round::look_for_leftovers() {
    ServerViews views;
    const auto look = [&] {
        result_.left = processes_with("tag=" + tag_);
        views = ephemerals_of_each_server(arena_.ensemble(), dir_);
        return result_.left.empty() && views.empty();
    };
    // The nodes of those who were killed go with their sessions.
    if (await(look, options_.timeout * 4 + seconds(10))) return;
    const auto before = views.disagreed;
    look();  // once more: the last look may have seen a node that went from one server to the next
    result_.left.insert(result_.left.end(), views.everywhere.begin(), views.everywhere.end());
    for (const auto& node : views.disagreed) {
        const bool stays = std::find(before.begin(), before.end(), node) != before.end();
        (stays ? result_.disagreed : result_.left).push_back(node);
    }
    excuse_waiters_where_servers_disagree();
}

/// Whoever waited behind a node that one server alone shows. A set waits with all its members for one of them, so that
/// it is the recipe that counts.
void Round::excuse_waiters_where_servers_disagree() {
    std::set<Recipe> recipes;
    for (const auto& node : result_.disagreed) {
        const int lock = lock_of_path(node, dir_);
        if (lock >= 0) recipes.insert(recipe_of(lock));
    }
    std::erase_if(result_.stuck, [&](const Stuck& stuck) {
        if (stuck.lock < 0 || recipes.count(recipe_of(stuck.lock)) == 0) return false;
        result_.excused.push_back(stuck.text);
        return true;
    });
}

void Round::judge() {
    auto& record = result_.record;
    std::vector<Hold> naive;
    for (auto& hold : board_.holds()) (hold.lock == kControlLock ? naive : record.holds).push_back(std::move(hold));
    for (int lock = 0; lock < kControlLock; ++lock) record.counters[lock] = board_.read_counter(lock);
    for (const auto& [lock, account] : register_.accounts()) record.fenced[lock] = {account.value, account.accepted};
    record.longest_belief = from_ms(options_.timeout.count() + 1000);
    result_.verdict = judge_round(record);
    RoundRecord control;
    control.holds = naive;
    control.counters[kControlLock] = board_.read_counter(kControlLock);
    result_.controls = control_.tried();
    if (result_.controls != 0 && !judge_round(control).clean()) result_.caught = result_.controls;
}

}  // namespace zkrecipes::chaos
