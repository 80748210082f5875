#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace zkrecipes::zklock {

/// Calls `visit(directory, name)` for every entry of a directory of /proc whose name is a number. Uses plain system
/// calls only, since it runs between fork and exec. False: the directory cannot be read.
template <class Visit>
bool for_each_number(const char* path, Visit visit) noexcept {
    struct Entry {  // the format of getdents64, for which glibc has no type
        std::uint64_t inode;
        std::int64_t offset;
        unsigned short length;
        unsigned char type;
        char name[1];
    };
    const int directory = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return false;
    alignas(8) char buffer[4096];
    long size = 0;
    while ((size = ::syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0) {
        for (long at = 0; at < size;) {
            const auto* entry = reinterpret_cast<const Entry*>(buffer + at);
            at += entry->length;
            if (entry->name[0] >= '0' && entry->name[0] <= '9') visit(directory, entry->name);
        }
    }
    ::close(directory);
    return size == 0;
}

}  // namespace zkrecipes::zklock
