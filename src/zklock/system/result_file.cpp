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

/// Names such as /dev/stdout lead to a file that other processes, for example the command, also write to.
bool names_a_descriptor(const std::string& file) noexcept {
    return file.starts_with("/dev/std") || file.starts_with("/dev/fd/") || file.starts_with("/proc/");
}

bool is_regular(const struct stat& status) { return S_ISREG(status.st_mode); }

/// Opens the file. Empties it if it is a regular file.
UniqueFd open_in_place(const std::string& file) noexcept {
    // Without blocking: a pipe without a reader must not keep zklock from ending.
    constexpr int kFlags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    UniqueFd fd(::open(file.c_str(), kFlags));
    // Create only a missing file: the kernel refuses O_CREAT for the file of another user in /tmp.
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

/// Creates a file beside `file` whose name nobody could foresee, and puts this name into `name`.
UniqueFd make_draft(const std::string& file, std::string& name) {
    std::uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) return UniqueFd();
    name = file + ".tmp" + std::to_string(number);
    return UniqueFd(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
}

/// Replaces the file in one step if its directory permits another file. Otherwise, or for a mount point, writes in
/// place.
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

/// False if the file cannot take a line, as a directory or /dev/full; errno says why.
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
    // The target of a link, or a file that cannot be removed, is emptied.
    if (::stat(file.c_str(), &status) == 0 && is_regular(status)) open_in_place(file);
}

}  // namespace zkrecipes::zklock
