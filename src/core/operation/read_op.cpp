#include "core/operation/read_op.hpp"

#include <limits>

#include "core/operation/wait.hpp"

namespace zkrecipes::internal {

bool is_ephemeral(const NodeStat& stat) noexcept {
    return stat.ephemeral_owner != 0 && stat.ephemeral_owner != std::numeric_limits<std::int64_t>::min();
}

bool ReadFsm::usable(Rc rc, const char* request, const std::string& path) {
    const Meaning what = meaning(rc);
    if (what == Meaning::done || what == Meaning::refused) {
        outage_.answered();
        return true;
    }
    handle_error(rc, std::string(request) + " of " + path);
    return false;
}

auto ReadOp::maker() {
    return [this](Patience patience, std::function<void(Result)> done) {
        fsm_.emplace(*this, patience);
        done_ = std::move(done);
        return shared_from_this();
    };
}

ReadOp::Outcome ReadOp::run(Deadline deadline, std::stop_token stop) {
    const auto core = core_;
    return run_blocking<Result>(core, maker(), deadline, std::move(stop)).outcome;
}

void ReadOp::run_later(Deadline deadline, std::stop_token stop, std::function<void(Outcome, const Error*)> done) {
    const auto core = core_;
    internal::run_later<Result>(core, maker(), deadline, std::move(stop),
                                [done = std::move(done)](const Result& result) {
                                    done(result.outcome, result.error ? &*result.error : nullptr);
                                });
}

void ReadOp::must_be_done(Outcome outcome) const {
    if (outcome == Outcome::done) return;
    throw Error(Errc::unreachable, operation_, user_path_,
                outcome == Outcome::stopped ? "it was stopped before a server answered"
                                            : "the deadline passed before a server answered");
}

bool ReadOp::can_be_directory(const NodeStat& stat) {
    if (!is_ephemeral(stat)) return true;
    constexpr Rc kWhy = Rc::no_children_for_ephemerals;
    fail(error_of(kWhy), answer_in_words("list", kWhy));
    return false;
}

void ReadOp::answer(Ended how, Errc error, std::string detail) {
    at_end();
    Result result;
    if (internal::timed_out(how)) result.outcome = Outcome::timed_out;
    if (how == Ended::stopped) result.outcome = Outcome::stopped;
    if (how == Ended::failed)
        result.error.emplace(error, operation_, user_path_, core_->explained(error, std::move(detail)));
    std::exchange(done_, nullptr)(std::move(result));
}

}  // namespace zkrecipes::internal
