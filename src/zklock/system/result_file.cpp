#include "zklock/system/result_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "zklock/system/descriptors.hpp"
#include "zklock/system/unique_fd.hpp"

namespace zkrecipes::zklock {
namespace {

/// /dev/stdout and its like lead to a file that others write to as well, the command among them.
bool names_a_descriptor(const std::string& file) noexcept {
    return file.starts_with("/dev/std") || file.starts_with("/dev/fd/") || file.starts_with("/proc/");
}

bool is_regular(const struct stat& status) { return S_ISREG(status.st_mode); }

/// Emptied, if it is a regular file.
UniqueFd open_in_place(const std::string& file) noexcept {
    // Not blocking: a pipe that nobody reads must not keep zklock from ending.
    constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    UniqueFd fd(::open(file.c_str(), kFlags));
    // Made only if it is not there: of another user's file in /tmp the kernel refuses O_CREAT.
    if (!fd && errno == ENOENT) fd = UniqueFd(::open(file.c_str(), kFlags | O_CREAT, static_cast<mode_t>(0644)));
    struct stat status {};
    if (fd && !names_a_descriptor(file) && ::fstat(fd.get(), &status) == 0 && is_regular(status)) {
        if (::ftruncate(fd.get(), 0) != 0) fd.reset();
    }
    return fd;
}

bool write_whole(const UniqueFd& fd, std::string_view text) noexcept {
    errno = 0;
    if (::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())) {
        errno = late_write_error(fd.get());
        return errno == 0;
    }
    if (errno == 0) errno = EIO;
    return false;
}

bool write_in_place(const std::string& file, std::string_view text) noexcept {
    const UniqueFd fd = open_in_place(file);
    return fd && write_whole(fd, text);
}

/// A file beside it that nobody else can have made or foreseen. `name` is its own on return.
UniqueFd make_draft(const std::string& file, std::string& name) {
    std::uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) return UniqueFd();
    name = file + ".tmp" + std::to_string(number);
    return UniqueFd(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
}

/// In one step where the directory takes another file; the file itself may be all that we may write, or a mount point.
bool replace(const std::string& file, std::string_view text) {
    std::string draft;
    const UniqueFd fd = make_draft(file, draft);
    if (!fd) return write_in_place(file, text);
    const bool written = write_whole(fd, text);
    if (written && std::rename(draft.c_str(), file.c_str()) == 0) return true;
    const int error = errno;
    ::unlink(draft.c_str());
    errno = error;
    return written && write_in_place(file, text);
}

/// What does not take even an empty line: a directory, /dev/full. False: errno says why.
bool takes_lines(const std::string& file) {
    struct stat target {};
    if (::stat(file.c_str(), &target) != 0) return true;  // it is made
    if (S_ISDIR(target.st_mode)) {
        errno = EISDIR;
        return false;
    }
    if (!S_ISCHR(target.st_mode)) return true;
    const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    return fd && ::write(fd.get(), "", 0) == 0;
}

}  // namespace

/// Without a trace: what reads from a pipe must not see it end. False: errno says why.
bool can_write_result(const std::string& file) {
    if (!takes_lines(file)) return false;
    struct stat status {};
    const bool there = ::lstat(file.c_str(), &status) == 0;
    if (!there || is_regular(status)) {
        std::string draft;
        if (make_draft(file, draft)) return ::unlink(draft.c_str()) == 0;
    }
    if (::access(file.c_str(), W_OK) == 0) return true;
    if (errno != ENOENT || !open_in_place(file)) return false;
    if (!there) ::unlink(file.c_str());
    return true;
}

bool write_result(const std::string& file, std::string_view text) {
    struct stat status {};
    if (::lstat(file.c_str(), &status) != 0 || is_regular(status)) return replace(file, text);
    return write_in_place(file, text);
}

void forget_result(const std::string& file) noexcept {
    struct stat status {};
    if (file.empty() || ::lstat(file.c_str(), &status) != 0) return;
    if (is_regular(status) && (::unlink(file.c_str()) == 0 || errno == ENOENT)) return;
    // Behind a link, or in a directory that keeps it: emptied.
    if (::stat(file.c_str(), &status) == 0 && is_regular(status)) open_in_place(file);
}

}  // namespace zkrecipes::zklock
