#include "zklock/look/lock_walk.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "zklock/report/describe.hpp"
#include "zklock/report/inbox.hpp"

namespace zkrecipes::zklock {
namespace {

// An inspect may have many requests on their way itself.
constexpr std::size_t kListsUnderWay = 256;
constexpr std::size_t kInspectsUnderWay = 64;

struct Walked {
    std::string path;
    bool is_list = false;
    LockNames names;
    LockView view;
    std::exception_ptr error;
};

/// The calls of one kind: those to make, and those under way.
struct Calls {
    std::deque<std::string> open;
    std::size_t under_way = 0;
    std::size_t most = 0;

    bool over() const { return open.empty() && under_way == 0; }
};

class LockWalk {
public:
    LockWalk(Answers& answers, const std::string& prefix, const std::string& skipped)
        : answers_(answers), prefix_(prefix), skipped_(skipped) {
        lists_.most = kListsUnderWay;
        inspects_.most = kInspectsUnderWay;
        lists_.open.push_back(prefix);
    }

    WalkedLocks run() {
        while (!result_.cut && !(lists_.over() && inspects_.over())) {
            start(inspects_, [this](const std::string& path) { inspect(path); });
            start(lists_, [this](const std::string& path) { list(path); });
            for (Walked& one : answers_.await(*inbox_)) take(one);
        }
        answers_.finished();
        drop_parts();
        for (auto& [path, view] : found_) result_.locks.push_back(std::move(view));
        std::sort(result_.unreadable.begin(), result_.unreadable.end());
        const auto end = std::unique(result_.unreadable.begin(), result_.unreadable.end());
        result_.unreadable.erase(end, result_.unreadable.end());
        return std::move(result_);
    }

private:
    template <class Call>
    static void start(Calls& calls, const Call& call) {
        for (; !calls.open.empty() && calls.under_way < calls.most; ++calls.under_way) {
            call(calls.open.front());
            calls.open.pop_front();
        }
    }

    void list(const std::string& path) {
        list_lock_async(answers_.session(), path, Deadline::never(), answers_.stop(),
                        [inbox = inbox_, path](Result<LockNames> names) {
                            inbox->post({path, true, std::move(names.value), {}, names.error});
                        });
    }

    void inspect(const std::string& path) {
        inspect_lock_async(answers_.session(), path, false, Deadline::never(), answers_.stop(),
                           [inbox = inbox_, path](Result<LockView> view) {
                               inbox->post({path, false, {}, std::move(view.value), view.error});
                           });
    }

    void take(Walked& one) {
        --(one.is_list ? lists_ : inspects_).under_way;
        if (one.error) return failed(one);
        one.is_list ? listed(one.names) : inspected(std::move(one.view));
    }

    void failed(const Walked& one) {
        try {
            std::rethrow_exception(one.error);
        } catch (const Error& error) {
            const bool is_root = one.is_list && one.path == prefix_;
            if (error.errc() == Errc::no_permission && !is_root) return result_.unreadable.push_back(one.path);
            if (!result_.cut) result_.cut = one.error;
        }
    }

    void listed(const LockNames& names) {
        if (names.path == prefix_) result_.exists = names.exists;
        const bool is_queue = std::any_of(names.participants.begin(), names.participants.end(),
                                          [](const Participant& one) { return one.mode != "semaphore"; });
        if (names.maybe_semaphore) undecided_.insert(names.path);
        if (is_queue || names.maybe_semaphore) inspects_.open.push_back(names.path);
        for (const std::string& other : names.others) {
            if (other != skipped_) lists_.open.push_back(other);
        }
    }

    void inspected(LockView view) {
        if (!view.semaphore) undecided_.erase(view.path);
        // Directories of these two names do not prove a semaphore.
        if (view.semaphore && view.leases == 0 && holders(view).empty()) {
            undecided_.erase(view.path);
            return;
        }
        if (!view.participants.empty()) found_[view.path] = std::move(view);
    }

    /// The queue of a semaphore is no lock of its own.
    void drop_parts() {
        for (const std::string& path : undecided_) {
            found_.erase(path + "/locks");
            found_.erase(path + "-__lock__");
        }
    }

    Answers& answers_;
    const std::string prefix_, skipped_;
    const std::shared_ptr<Inbox<Walked>> inbox_ = std::make_shared<Inbox<Walked>>();
    Calls lists_, inspects_;
    std::map<std::string, LockView> found_;
    std::set<std::string> undecided_;  // semaphores, and what may still turn out to be one
    WalkedLocks result_;
};

}  // namespace

WalkedLocks walk_locks(Answers& answers, const std::string& prefix, const std::string& skipped) {
    return LockWalk(answers, prefix, skipped).run();
}

}  // namespace zkrecipes::zklock
