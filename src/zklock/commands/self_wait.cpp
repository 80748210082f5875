#include "zklock/commands/self_wait.hpp"

#include <algorithm>

#include "zklock/command_line/connection.hpp"
#include "zklock/system/process_table.hpp"

namespace zkrecipes::zklock {

void warn_of_self_wait(const Options& options, Console& console) {
    const bool creates = options.command != Command::wait;
    if (creates && options.handed.acl_withheld && options.acl == Acl::open()) {
        console.warning(
            "the zklock in whose command this zklock runs creates its nodes with an access list. It does not hand it "
            "on, because it may contain secrets. Anybody may use the nodes of this zklock; see --acl and --auth-file");
    }
    if (options.nonblock) return;
    const std::vector<HeldLock> wanted = locks_of(options);
    for (const HeldLock& held : options.handed.held) {
        const auto blocked =
            std::find_if(wanted.begin(), wanted.end(), [&](const HeldLock& lock) { return excludes(held, lock); });
        if (blocked == wanted.end() || has_ended(held.zklock)) continue;
        const LockSpec& lock = options.locks[static_cast<std::size_t>(blocked - wanted.begin())];
        console.warning(lock.path + " is held by the zklock (pid " + std::to_string(held.zklock.pid) +
                        ") in whose command this zklock runs, so this zklock waits for itself; use another lock, or "
                        "-n or -w to give up");
        return;
    }
}

}  // namespace zkrecipes::zklock
