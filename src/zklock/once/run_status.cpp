#include "zklock/once/run_status.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <zkrecipes/read_node.hpp>

#include "zklock/command_line/connection.hpp"
#include "zklock/command_line/duration.hpp"

namespace zkrecipes::zklock {
namespace {

void read_record(Answers& answers, const std::string& path, LockStatus& status) {
    status.run.reset();
    status.unreadable = false;
    try {
        const auto node = read_node(answers.session(), run_record_path(path), Fresh::no, answers.answer_by());
        if (!node) return;
        status.run = parse_run_record(node->data);
        status.unreadable = !status.run;
    } catch (const Error& error) {
        if (error.errc() != Errc::no_permission) throw;
        status.unreadable = true;
    }
}

bool has_holder(const LockView& lock, std::int64_t token) {
    return std::any_of(lock.participants.begin(), lock.participants.end(), [&](const Participant& participant) {
        return participant.holder && participant.token == token;
    });
}

}  // namespace

LockStatus read_lock_status(Answers& answers, const std::string& path) {
    LockStatus status;
    status.lock = answers.inspect(path);
    read_record(answers, path, status);
    // The run may have begun after the lock was read. If its record is still the same after another look at the lock,
    // and it is not among the holders, it is over.
    while (status.run && status.run->state == RunRecord::State::running &&
           !has_holder(status.lock, status.run->token)) {
        const RunRecord before = *status.run;
        status.lock = answers.inspect(path);
        read_record(answers, path, status);
        if (status.run != before || has_holder(status.lock, before.token)) continue;
        status.run->state = RunRecord::State::unknown;
    }
    if (status.lock.exists && !status.lock.semaphore && status.lock.participants.empty()) {
        const LockNames names = list_lock(answers.session(), path, answers.answer_by());
        if (names.participants.empty() && !names.others.empty()) status.other_node = names.others.front();
    }
    return status;
}

std::string run_line(const LockStatus& status, const Options& options) {
    if (status.unreadable) {
        return "  last run cannot be read: see " + server_path(options, run_record_path(status.lock.path)) + "\n";
    }
    if (!status.run) return "";
    const RunRecord& run = *status.run;
    std::string text = "  last run ";
    switch (run.state) {
        case RunRecord::State::running: text += "running"; break;
        case RunRecord::State::done: text += "done, " + outcome_in_words(run); break;
        case RunRecord::State::unknown: text += "unknown, " + outcome_in_words(run); break;
    }
    text += ", by " + claimer(run) + "\n           claimed " + iso_time(run.claimed);
    if (run.ended) text += ", ended " + iso_time(*run.ended);
    return text + "\n           next period begins " + iso_time(period_start(run.claimed, run.per) + run.per) +
           " (once per " + format_duration(run.per) + ")\n";
}

boost::json::value run_json(const LockStatus& status) {
    if (status.unreadable) return boost::json::object{{"state", "unreadable"}};
    if (!status.run) return nullptr;
    boost::json::object object = to_json(*status.run);
    object.erase("v");
    object["period"] = iso_time(period_start(status.run->claimed, status.run->per));
    return object;
}

}  // namespace zkrecipes::zklock
