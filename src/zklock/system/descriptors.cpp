#include "zklock/system/descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

#include "zklock/system/proc_directory.hpp"

namespace zkrecipes::zklock {
namespace {

/// Not a loop up to the limit, which may be a thousand million and take a minute.
template <class Visit>
bool for_each_descriptor(unsigned first, unsigned last, Visit visit) noexcept {
    return for_each_number("/proc/self/fd", [&](int directory, const char* name) {
        unsigned fd = 0;
        for (; *name >= '0' && *name <= '9'; ++name) fd = fd * 10 + static_cast<unsigned>(*name - '0');
        if (fd >= first && fd <= last && static_cast<int>(fd) != directory) visit(static_cast<int>(fd));
    });
}

}  // namespace

bool close_from(unsigned first) noexcept {
    if (::close_range(first, ~0U, 0) == 0) return true;
    return for_each_descriptor(first, ~0U, [](int fd) { ::close(fd); });
}

bool close_on_exec(unsigned first, unsigned last) noexcept {
    if (first > last || ::close_range(first, last, CLOSE_RANGE_CLOEXEC) == 0) return true;
    return for_each_descriptor(first, last, [](int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); });
}

int late_write_error(int fd) noexcept {
    const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return copy >= 0 && ::close(copy) != 0 && errno != EINTR ? errno : 0;
}

bool fill_standard_descriptors() noexcept {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(fd, F_GETFD) >= 0) continue;
        // open() returns the lowest free number, which is this one.
        if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
    }
    return true;
}

}  // namespace zkrecipes::zklock
