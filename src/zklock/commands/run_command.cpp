#include "zklock/commands/run_command.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "zklock/around/on_lost.hpp"
#include "zklock/commands/lock_session.hpp"
#include "zklock/commands/once_per.hpp"
#include "zklock/commands/runner.hpp"
#include "zklock/process/children.hpp"
#include "zklock/process/dead_man.hpp"
#include "zklock/report/events.hpp"
#include "zklock/report/json.hpp"
#include "zklock/report/result.hpp"
#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {
namespace {

struct Surroundings {
    Console& console;
    const Inheritance& inheritance;
    Signals& signals;
    EventLog& events;
    bool whole_tree;
};

struct Ending {
    int code = 0;
    Death death;
};

std::optional<Ending> run_under(const Options& options, const Surroundings& around, LockSession& lock,
                                DeadMansSwitch& dead_man, std::optional<Loss>& loss) {
    std::optional<RunClaim> claim;
    std::optional<Runner> runner;
    int code = 0;
    const auto give_back = [&] {
        const bool started = runner && runner->started();
        return claim && !started ? withdraw_claim(around.console, around.events, around.signals, *claim) : 0;
    };
    try {
        if (options.once_per) {
            claim.emplace(options, lock.session(), lock.grant());
            const auto refused = claim_period(options, around.console, around.events, around.signals, lock, *claim);
            if (refused) return Ending{*refused, {}};
        }
        runner.emplace(options, around.console, around.events, around.signals, lock, dead_man, around.inheritance,
                       around.whole_tree, claim ? &*claim : nullptr);
        code = runner->run();
    } catch (const LostBeforeStart&) {
        give_back();
        throw;
    } catch (const Interrupted&) {
        give_back();
        throw;
    } catch (...) {
        if (const int signal = give_back()) throw Interrupted{signal};
        throw;
    }
    if (runner->lost()) loss = Loss{runner->loss_reason(), lock.token(), lock.nodes()};
    if (options.command == Command::elect && runner->lost() && !runner->asked_to_stop()) return std::nullopt;
    boost::json::object object = result_object(options, runner->outcome(), code);
    merge(object, runner->details());
    if (claim && !runner->failed_to_start()) {
        boost::json::object once = once_fields(*claim, claim->record());
        once["recorded"] = claim->recorded();
        object["once"] = std::move(once);
    }
    const int concluded = conclude(options, around.console, around.events, std::move(object));
    return Ending{concluded, runner->death()};
}

/// Empty: the leadership was lost, and zklock should stand for election again. Sets `loss` if the lock was lost, also
/// before the command started.
std::optional<Ending> run_once(const Options& options, const Surroundings& around, std::optional<Loss>& loss) {
    std::optional<DeadMansSwitch> dead_man;  // is waited for after the session has ended
    LockSession lock(options, around.console, around.events, around.signals);
    dead_man.emplace(around.whole_tree);  // while zklock waits for a server
    lock.acquire();
    try {
        std::optional<Ending> ending = run_under(options, around, lock, *dead_man, loss);
        if (ending && !loss && options.command == Command::run && ending->death.signal == 0 && lock.closed()) {
            // What is left are threads that have nothing to do. To wait for them takes longer than closing the session.
            dead_man.reset();
            ::_exit(ending->code);
        }
        return ending;
    } catch (const LostBeforeStart& lost) {
        loss = Loss{lost.what(), lock.token(), lock.nodes()};
        throw;
    }
}

/// Runs the command of --on-lost. The command of the lost lock is dead, and so is the switch. Returns the signal that
/// arrived meanwhile; 0: none.
int deal_with(const std::optional<Loss>& loss, const Options& options, const Surroundings& around) {
    return loss ? after_loss(options, around.console, around.inheritance, around.signals, *loss) : 0;
}

Ending run_to_the_end(const Options& options, const Surroundings& around) {
    std::optional<Loss> loss;
    try {
        const auto ending = run_once(options, around, loss);
        deal_with(loss, options, around);
        return *ending;
    } catch (const LostBeforeStart&) {
        deal_with(loss, options, around);
        throw;
    }
}

/// Stands for election again after each loss, with a new session: the command of the earlier session is dead, and its
/// node disappears with that session.
Ending run_while_elected(Options options, const Surroundings& around) {
    for (;;) {
        std::optional<Loss> loss;
        std::optional<Ending> ending;
        try {
            ending = run_once(options, around, loss);
        } catch (const LostBeforeStart&) {  // stand again
        }
        const int signal = deal_with(loss, options, around);
        if (ending) return *ending;
        if (signal != 0) throw Interrupted{signal};
        around.console.warning("standing for election at " + options.lock + " again");
        // The limits apply to the first time: later, a missing server is only an interruption.
        options.connect_timeout.reset();
        options.wait_limit.reset();
        options.nonblock = false;
    }
}

/// zklock finds the processes of the command in /proc.
void check_process_table() {
    char self[16] = {};
    const UniqueFd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const bool known = proc && ::readlinkat(proc.get(), "self", self, sizeof self - 1) > 0;
    if (!known) {
        throw Failure(kOsError, std::string("cannot read /proc, which shows zklock the processes of the command: ") +
                                    std::strerror(errno) + "; check that it is mounted");
    }
    if (std::to_string(::getpid()) == self) return;
    throw Failure(kOsError,
                  "/proc shows another pid namespace, not the processes of this one: mount it here "
                  "(unshare --mount-proc)");
}

}  // namespace

int run_command(const Options& options, Console& console, const Inheritance& inheritance, EventLog& events,
                Signals& signals) {
    check_process_table();
    // Makes zklock the parent of descendants that leave the command's process group, so that it finds them. Not if this
    // process had children before it executed zklock: those do not belong to the command.
    const bool alone = !has_children();
    if (!alone && options.whole_tree) {
        throw Failure(kUsage,
                      "--whole-tree: the program that executed zklock has left child processes, and zklock cannot tell "
                      "them from those of the command: run zklock without exec");
    }
    const bool whole_tree = alone && ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
    if (!whole_tree && options.whole_tree) {
        throw Failure(kOsError, std::string("--whole-tree: ") + std::strerror(errno));
    }
    const Surroundings around{console, inheritance, signals, events, whole_tree};
    const Ending ending =
        options.command == Command::run ? run_to_the_end(options, around) : run_while_elected(options, around);
    if (ending.death.signal != 0) Signals::die_of(ending.death.signal, ending.death.whole_group);
    return ending.code;
}

}  // namespace zkrecipes::zklock
