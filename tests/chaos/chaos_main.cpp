// chaos: all recipes and zklock on real ensembles, while servers, clients and the network between them go wrong. What
// everybody believed is recorded and judged after each round. Exit code 0: no violation. See scripts/chaos and
// docs/testing-chaos.md.
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>
#include <zkrecipes/testenv/error.hpp>

#include "chaos/history_file.hpp"
#include "chaos/round.hpp"
#include "chaos/tally.hpp"

namespace {

using namespace zkrecipes::chaos;
using Clock = std::chrono::steady_clock;

struct Arguments {
    double minutes = 3;
    std::uint64_t seed = std::random_device{}();
    int servers = 0;  // 0: three and five in turn
    int clients = 4;
    std::vector<const Nemesis*> nemeses;
    std::vector<Recipe> recipes;
    std::string history = ".";
    bool share = false;
};

constexpr int kRoundsOfAnArena = 4;
constexpr int kGroupsOfARound = 5;

void print_usage(std::FILE* to) {
    std::fprintf(to,
                 "chaos [--minutes M] [--seed S] [--servers 3|5] [--clients N] [--nemesis NAME]... [--recipe NAME]...\n"
                 "      [--history FOLDER] [--share]\n\n"
                 "  --minutes M       for how long (3); the round that is under way then is finished\n"
                 "  --seed S          what happens, and when; not how processes are scheduled\n"
                 "  --servers 3|5     members of the ensemble; otherwise in turn\n"
                 "  --clients N       client processes with all recipes (4); three more run zklock\n"
                 "  --nemesis NAME    only these; otherwise all\n"
                 "  --recipe NAME     only these; otherwise all\n"
                 "  --history FOLDER  where the history of the last round, and of each round with a finding, goes (.)\n"
                 "  --share           what every build runs: one round, some twenty seconds\n\nrecipes: ");
    for (int i = 0; i < kRecipes; ++i) std::fprintf(to, "%s ", to_string(static_cast<Recipe>(i)));
    std::fprintf(to, "\nnemeses:\n");
    for (const auto& nemesis : nemeses()) std::fprintf(to, "  %-17s %s\n", nemesis.name, nemesis.what);
}

Arguments parse(int argc, char** argv) {
    Arguments out;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "--help" || name == "-h") {
            print_usage(stdout);
            std::exit(0);
        }
        if (name == "--share") {
            out.share = true;
            continue;
        }
        if (i + 1 == argc) throw std::invalid_argument(name + ": unknown, or its value is missing");
        const std::string value = argv[++i];
        if (name == "--minutes") {
            out.minutes = std::stod(value);
        } else if (name == "--seed") {
            out.seed = std::stoull(value);
        } else if (name == "--servers" && (value == "3" || value == "5")) {
            out.servers = std::stoi(value);
        } else if (name == "--clients" && std::atoi(value.c_str()) > 1) {
            out.clients = std::stoi(value);
        } else if (name == "--history") {
            out.history = value;
        } else if (name == "--nemesis" && nemesis_named(value) != nullptr) {
            out.nemeses.push_back(nemesis_named(value));
        } else if (name == "--recipe" && recipe_named(value)) {
            out.recipes.push_back(*recipe_named(value));
        } else {
            throw std::invalid_argument(name + " " + value + ": not known, see --help");
        }
    }
    if (out.nemeses.empty()) {
        for (const auto& nemesis : nemeses()) out.nemeses.push_back(&nemesis);
    }
    if (out.recipes.empty()) {
        for (int i = 0; i < kRecipes; ++i) out.recipes.push_back(static_cast<Recipe>(i));
    }
    return out;
}

class Run {
public:
    explicit Run(const Arguments& arguments) : arguments_(arguments), means_(Means::find()), random_(arguments.seed) {
        std::printf("seed %llu\n", static_cast<unsigned long long>(arguments.seed));
        std::fflush(stdout);
        note_missing("full-disk", means_.no_disk);
        note_missing("clock-jump", means_.no_clock);
    }

    bool all() {
        const auto until = Clock::now() + std::chrono::duration<double>(arguments_.minutes * 60);
        do {
            one_round();
        } while (!arguments_.share && Clock::now() < until);
        tally_.print();
        return tally_.clean();
    }

private:
    void note_missing(const std::string& nemesis, const std::string& reason) {
        if (reason.empty() || !wanted(nemesis)) return;
        tally_.add_missing(nemesis, reason);
        missing_.push_back(nemesis);
    }
    bool wanted(const std::string& name) const {
        return std::any_of(arguments_.nemeses.begin(), arguments_.nemeses.end(),
                           [&](const Nemesis* nemesis) { return name == nemesis->name; });
    }

    void one_round() {
        const auto begun = Clock::now();
        RoundOptions options = next_round();
        try {
            renew_arena();
            options.faults = arguments_.share ? faults_of_the_share() : next_faults();
            options.control = std::any_of(options.faults.begin(), options.faults.end(), [](const auto& group) {
                return std::string(group.front()->name) == "isolate-follower";
            });
            const auto result = Round(*arena_, options).run();
            tally_.add(result, Clock::now() - begun);
            report(options, result);
            if (!result.disagreed.empty()) arena_.reset();
        } catch (const zkrecipes::testenv::MissingDependency&) {
            throw;
        } catch (const std::exception& error) {
            tally_.add_failure();
            std::printf("round %d (seed %llu) could not be finished: %s\n", options.number,
                        static_cast<unsigned long long>(options.seed), error.what());
            std::fflush(stdout);
            arena_.reset();
        }
    }

    RoundOptions next_round() {
        RoundOptions options;
        options.number = ++rounds_;
        options.seed = random_();
        options.recipes = arguments_.recipes;
        options.clients = arguments_.share ? 3 : arguments_.clients;
        options.zklocks = arguments_.share ? 2 : 3;
        options.brief = arguments_.share;
        return options;
    }

    // The next ensemble is of the other size, and every second one has the reaper.
    void renew_arena() {
        if (arena_ != nullptr && ++rounds_of_arena_ < kRoundsOfAnArena) return;
        arena_.reset();  // first: two ensembles at a time are more than a small machine likes
        Arena::Options options;
        options.servers = arguments_.servers != 0 ? arguments_.servers : arenas_ % 2 == 0 ? 3 : 5;
        options.reaper = wanted("reaper") && (arguments_.nemeses.size() == 1 || arenas_ / 2 % 2 == arenas_ % 2);
        if (arguments_.share) options = {};
        ++arenas_;
        rounds_of_arena_ = 0;
        arena_ = std::make_unique<Arena>(options, means_);
    }

    /// Each nemesis once before any of them again, and sometimes one of the servers with one of the clients.
    std::vector<std::vector<const Nemesis*>> next_faults() {
        std::vector<std::vector<const Nemesis*>> groups;
        for (int i = 0; i < kGroupsOfARound; ++i) {
            const Nemesis* first = draw();
            if (first == nullptr) continue;
            groups.push_back({first});
            if (first->on_servers && random_() % 3 == 0) {
                const Nemesis* second = draw();
                if (second == nullptr) continue;
                second->on_servers ? groups.push_back({second}) : groups.back().push_back(second);
            }
        }
        return groups;
    }

    const Nemesis* draw() {
        if (bag_.empty()) {
            bag_ = arguments_.nemeses;
            std::erase_if(bag_, [&](const Nemesis* nemesis) {
                return std::find(missing_.begin(), missing_.end(), nemesis->name) != missing_.end();
            });
            std::shuffle(bag_.begin(), bag_.end(), random_);
        }
        const bool reaper = arena_->options().reaper;
        for (auto next = bag_.begin(); next != bag_.end(); ++next) {
            const Nemesis* nemesis = *next;
            if (!reaper && std::strcmp(nemesis->name, "reaper") == 0) continue;  // it waits for such an arena
            bag_.erase(next);
            return nemesis;
        }
        bag_.clear();
        return nullptr;
    }

    static std::vector<std::vector<const Nemesis*>> faults_of_the_share() {
        return {{nemesis_named("kill-leader"), nemesis_named("stop-clients")}};
    }

    static bool is_kept(const RoundResult& result) { return !result.clean() || !result.disagreed.empty(); }

    void report(const RoundOptions& options, const RoundResult& result) {
        mkdir(arguments_.history.c_str(), 0755);
        std::string file = arguments_.history + "/chaos-last.jsonl";
        if (is_kept(result))
            file = arguments_.history + "/chaos-" + std::to_string(arguments_.seed) + "-" +
                   std::to_string(options.number) + ".jsonl";
        write_history(file, options, result);
        std::string names;
        for (const auto& met : result.met) names += " " + met.nemesis;
        std::printf("round %d: %zu holds;%s\n", options.number, result.record.holds.size(), names.c_str());
        for (const auto& finding : result.verdict.findings)
            std::printf("  VIOLATION %s: lock %d (%s): %s\n", to_string(finding.violation), finding.lock,
                        to_string(recipe_of(finding.lock)), finding.text.c_str());
        for (const auto& stuck : result.stuck) std::printf("  STUCK %s\n", stuck.text.c_str());
        for (const auto& text : result.disagreed) std::printf("  servers disagree: %s\n", text.c_str());
        for (const auto& text : result.excused) std::printf("  waited there: %s\n", text.c_str());
        for (const auto& text : result.left) std::printf("  LEFT BEHIND %s\n", text.c_str());
        for (const auto& text : result.errors) std::printf("  ERROR %s\n", text.c_str());
        if (is_kept(result)) std::printf("  its history: %s\n", file.c_str());
        std::fflush(stdout);
    }

    const Arguments& arguments_;
    const Means means_;
    std::mt19937_64 random_;
    std::unique_ptr<Arena> arena_;
    std::vector<const Nemesis*> bag_;
    std::vector<std::string> missing_;
    Tally tally_;
    int rounds_ = 0;
    int arenas_ = 0;
    int rounds_of_arena_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a client that has ended is noticed by what it did not say
    try {
        const Arguments arguments = parse(argc, argv);
        return Run(arguments).all() ? 0 : 1;
    } catch (const zkrecipes::testenv::MissingDependency& error) {
        std::fprintf(stderr, "chaos: %s\n", error.what());
        return 77;  // for ctest: skipped
    } catch (const std::invalid_argument& error) {
        std::fprintf(stderr, "chaos: %s\n", error.what());
        return 64;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "chaos: %s\n", error.what());
        return 1;
    }
}
