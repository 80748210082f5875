#include "zklock/once/run_claim.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <thread>
#include <utility>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/transaction.hpp>

#include "zklock/command_line/connection.hpp"
#include "zklock/report/text.hpp"

namespace zkrecipes::zklock {
namespace {

/// Before zklock ends without a run, the record is corrected if the servers answer soon; after a loss, if they answer
/// at once, because the news of the loss must not wait.
constexpr std::chrono::milliseconds kSoon(1000);
/// When the command has ended, the record of its outcome may take so long, and no longer than the lock is held.
constexpr std::chrono::milliseconds kOutcome(5000);
constexpr std::chrono::milliseconds kAtOnce(300);

std::string random_id() {
    unsigned char bytes[16];
    if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) {
        throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    std::string text;
    for (const unsigned char byte : bytes) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", byte);
        text += digits;
    }
    return text;
}

std::string this_host() {
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

/// Whether the claim is tried again after this error: nothing is known to be wrong, or another client was faster.
bool worth_another_look(Errc code) noexcept {
    switch (code) {
        case Errc::unreachable:
        case Errc::connection_lost:
        case Errc::outcome_unknown:
        case Errc::bad_version:
        case Errc::node_exists:
        case Errc::no_node: return true;
        default: return false;
    }
}

[[noreturn]] void refuse_record(const std::string& path) {
    throw Failure(kBadData, printable(path) +
                                " does not contain a record of zklock --once-per that this version understands: look "
                                "at this node, and delete it if no such zklock uses the lock");
}

}  // namespace

RunClaim::RunClaim(const Options& options, Session& session, const Grant& grant)
    : session_(session),
      grant_(grant),
      path_(run_record_path(options.lock)),
      path_on_servers_(server_path(options, path_)),
      retry_unknown_(options.retry_unknown) {
    record_.id = random_id();
    record_.per = std::chrono::duration_cast<std::chrono::milliseconds>(*options.once_per);
    record_.host = this_host();
    record_.pid = ::getpid();
    record_.name = options.name;
    record_.token = grant.token();
    record_.node = grant.node();
}

std::optional<RunClaim::Claimed> RunClaim::claim(std::stop_token stop) {
    while (!stop.stop_requested()) {
        if (!grant_.held()) throw Error(Errc::lock_lost, "claim", path_);
        try {
            const auto stored = read(Guard::held, Deadline(grant_.remaining_lease()), stop);
            auto found = stored ? parse_run_record(stored->data) : std::nullopt;
            if (stored && !found) refuse_record(path_on_servers_);
            const EpochTime now = epoch_now();
            const EpochTime start = period_start(now, record_.per);
            const Decision decision = decide(found, start, retry_unknown_, record_.id);
            if (decision == Decision::ours) {
                version_ = stored->version;
                return Claimed{Decision::run, other_};
            }
            may_be_written_ = false;  // an earlier attempt had no effect, and will have none after this read
            period_ = start;
            if (decision != Decision::run) return Claimed{decision, std::move(found)};
            write_claim(stored, found, now, stop);
            if (version_) return Claimed{Decision::run, other_};
        } catch (const Error& error) {
            if (!worth_another_look(error.errc())) throw;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
    }
    return std::nullopt;
}

void RunClaim::write_claim(const std::optional<Stored>& stored, const std::optional<RunRecord>& other, EpochTime now,
                           const std::stop_token& stop) {
    before_ = stored;
    other_ = other;
    record_.claimed = other ? std::max(now, other->claimed) : now;
    Transaction transaction(session_, grant_);
    may_be_written_ = true;
    if (stored) {
        transaction.set(path_, to_text(record_), stored->version);
    } else {
        transaction.create(path_, to_text(record_));
    }
    const auto result = transaction.try_commit_until(Deadline(grant_.remaining_lease()), stop);
    if (result) version_ = result->operations.front().version;
}

std::optional<RunClaim::Stored> RunClaim::read(Guard guard, Deadline deadline, const std::stop_token& stop) {
    const auto node = guard == Guard::held ? read_node(session_, path_, grant_, deadline, stop)
                                           : read_node(session_, path_, Fresh::yes, deadline, stop);
    if (!node) return std::nullopt;
    return Stored{node->data, node->version};
}

bool RunClaim::record_done(int number, bool signalled, std::stop_token stop) {
    record_.state = RunRecord::State::done;
    record_.ended = epoch_now();
    (signalled ? record_.signal : record_.exit_code) = number;
    return recorded_ = replace(to_text(record_), Guard::held, Deadline(kOutcome), stop);
}

bool RunClaim::record_lost(const std::string& reason, std::stop_token stop) {
    record_.state = RunRecord::State::unknown;
    record_.ended = epoch_now();
    record_.because = reason;
    if (session_.state() != SessionState::connected) return false;
    return recorded_ = replace(to_text(record_), Guard::node_exists, Deadline(kAtOnce), stop);
}

bool RunClaim::withdraw(std::stop_token stop) {
    try {
        if (!version_) {  // the claim was interrupted, and may have been written
            const auto stored = read(Guard::node_exists, Deadline(kSoon), stop);
            const auto found = stored ? parse_run_record(stored->data) : std::nullopt;
            if (!found || found->id != record_.id) return true;
            version_ = stored->version;
        }
        return replace(before_ ? std::optional(before_->data) : std::nullopt, Guard::node_exists, Deadline(kSoon),
                       stop);
    } catch (const Error&) {
        return false;
    }
}

/// Replaces the record of this run, or removes it. False: it may still be there.
bool RunClaim::replace(const std::optional<std::string>& data, Guard guard, Deadline limit,
                       const std::stop_token& stop) {
    try {
        while (!stop.stop_requested() && !limit.is_passed() && (guard == Guard::node_exists || grant_.held())) {
            if (commit_replacement(data, guard, limit, stop)) return true;
            // Not written, or not known: the read on the same session decides.
            const auto now = read(guard, limit, stop);
            if (now ? now->data == data : !data) return true;
            if (!now || now->version != version_) return false;
        }
    } catch (const Error& error) {  // the lock node or the record is gone, or no server answers
        deleted_ = error.errc() == Errc::no_node && error.path() == path_;
    }
    return false;
}

bool RunClaim::commit_replacement(const std::optional<std::string>& data, Guard guard, Deadline deadline,
                                  const std::stop_token& stop) {
    try {
        Transaction transaction =
            guard == Guard::held ? Transaction(session_, grant_) : Transaction(session_, Sequencer(grant_));
        if (data) {
            transaction.set(path_, *data, *version_);
        } else {
            transaction.remove(path_, *version_);
        }
        return transaction.try_commit_until(deadline, stop).has_value();
    } catch (const Error& error) {
        if (error.errc() == Errc::outcome_unknown || error.errc() == Errc::connection_lost) return false;
        throw;
    }
}

}  // namespace zkrecipes::zklock
