#include "chaos/tally.hpp"

#include <algorithm>
#include <cstdio>

namespace zkrecipes::chaos {

void Tally::add(const RoundResult& result, std::chrono::nanoseconds took) {
    ++rounds_;
    took_ += took;
    for (const auto& met : result.met) {
        auto& row = nemeses_[met.nemesis];
        if (!met.failed.empty()) {
            ++row.failed;
            reasons_[met.nemesis] = met.failed.substr(0, met.failed.find('\n'));
            continue;
        }
        ++row.times;
        row.lasted += met.healed - met.begun;
        if (met.recovered != 0) row.slowest = std::max(row.slowest, met.recovered - met.healed);
        row.holds += static_cast<int>(std::count_if(
            result.record.holds.begin(), result.record.holds.end(),
            [&](const Hold& hold) { return hold.granted_at < met.healed && hold.last_true_at > met.begun; }));
    }
    for (const auto& [lock, row] : result.verdict.locks) {
        auto& all = recipes_[recipe_of(lock)];
        all.sum.grants += row.grants;
        all.sum.lost += row.lost;
        all.sum.unproven += row.unproven;
        (row.plain_judged ? all.sum.plain : all.unjudged) += row.plain;
        all.sum.fenced += row.fenced;
        all.sum.refused += row.refused;
        all.sum.overlaps += row.overlaps;
        all.sum.lost_updates += row.lost_updates;
    }
    controls_ += result.controls;
    caught_ += result.caught;
    findings_ += result.verdict.findings.size();
    stuck_ += result.stuck.size();
    left_ += result.left.size();
    errors_ += result.errors.size();
    if (!result.disagreed.empty()) ++disagreed_;
    excused_ += result.excused.size();
}

bool Tally::clean() const {
    const bool blind = controls_ != 0 && caught_ == 0;
    return rounds_ != 0 && findings_ + stuck_ + left_ + errors_ == 0 && failures_ == 0 && !blind;
}

void Tally::print() const {
    print_nemeses();
    print_recipes();
    std::printf(
        "\n%d rounds, %.1f minutes. Judge's findings: %zu; stuck: %zu; left behind: %zu; errors of clients: %zu; "
        "rounds that could not be finished: %d\n",
        rounds_, std::chrono::duration<double>(took_).count() / 60, findings_, stuck_, left_, errors_, failures_);
    if (controls_ == 0) {
        std::printf("No naive client was tried (isolate-follower, for long enough).\n");
    } else {
        std::printf("Naive clients caught: %d of %d%s\n", caught_, controls_,
                    caught_ == 0 ? ". BLIND: this run proves nothing" : "");
    }
    if (disagreed_ != 0) {
        std::printf("Servers that disagreed for good about a node: in %d rounds; who waited there: %zu, not judged.\n",
                    disagreed_, excused_);
    }
    for (const auto& [nemesis, reason] : missing_) std::printf("not here: %s: %s\n", nemesis.c_str(), reason.c_str());
    std::printf(clean() ? "PASSED\n" : "FAILED\n");
    std::fflush(stdout);
}

void Tally::print_nemeses() const {
    std::printf("\n%-18s %6s %9s %8s %14s\n", "nemesis", "times", "seconds", "holds", "recovered, s");
    for (const auto& [name, row] : nemeses_) {
        std::printf("%-18s %6d %9.1f %8d %14.1f", name.c_str(), row.times, to_ms(row.lasted) / 1000, row.holds,
                    to_ms(row.slowest) / 1000);
        if (row.failed != 0) std::printf("  not done %d times: %s", row.failed, reasons_.at(name).c_str());
        std::printf("\n");
    }
}

void Tally::print_recipes() const {
    std::printf("\n%-16s %8s %7s %9s %9s %9s %9s %8s %6s %9s\n", "recipe", "holds", "lost", "unproven", "overlaps",
                "unfenced", "unjudged", "fenced", "gone", "refused");
    for (const auto& [recipe, row] : recipes_) {
        std::printf("%-16s %8d %7d %9d %9d %9lld %9lld %8lld %6lld %9lld\n", to_string(recipe), row.sum.grants,
                    row.sum.lost, row.sum.unproven, row.sum.overlaps, static_cast<long long>(row.sum.plain),
                    static_cast<long long>(row.unjudged), static_cast<long long>(row.sum.fenced),
                    static_cast<long long>(row.sum.lost_updates), static_cast<long long>(row.sum.refused));
    }
}

}  // namespace zkrecipes::chaos
