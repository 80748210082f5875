#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace zkrecipes::test {

/// In a process that a test has forked: it dies with the test, also when that is killed. Again after a change of user.
inline void die_with(pid_t test) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != test) ::_exit(99);
}

}  // namespace zkrecipes::test
