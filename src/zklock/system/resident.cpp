#include "zklock/system/resident.hpp"

#include <link.h>
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

namespace zkrecipes::zklock {
namespace {

std::vector<Memory> segments(const dl_phdr_info& object) {
    std::vector<Memory> result;
    for (unsigned i = 0; i < object.dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = object.dlpi_phdr[i];
        if (header.p_type != PT_LOAD || header.p_memsz == 0) continue;
        result.emplace_back(reinterpret_cast<const std::byte*>(object.dlpi_addr + header.p_vaddr), header.p_memsz);
    }
    return result;
}

bool hold(const std::vector<Memory>& segments, const void* address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return std::any_of(segments.begin(), segments.end(), [at](Memory segment) {
        const auto begin = reinterpret_cast<std::uintptr_t>(segment.data());
        return at >= begin && at < begin + segment.size();
    });
}

int collect(dl_phdr_info* object, std::size_t, void* result) {
    const std::vector<Memory> found = segments(*object);
    const bool program = hold(found, reinterpret_cast<const void*>(&stay_resident));
    const bool library = hold(found, reinterpret_cast<const void*>(&::poll));
    auto& all = *static_cast<std::vector<Memory>*>(result);
    if (program || library) all.insert(all.end(), found.begin(), found.end());
    return 0;
}

/// More stack than later calls use.
[[gnu::noinline]] void lock_stack() noexcept {
    char room[64 * 1024];
    for (std::size_t i = 0; i < sizeof room; i += 1024) static_cast<volatile char*>(room)[i] = 0;
    ::mlock(room, sizeof room);
}

}  // namespace

std::vector<Memory> essential_memory() {
    std::vector<Memory> result;
    ::dl_iterate_phdr(collect, &result);
    std::sort(result.begin(), result.end(), [](Memory a, Memory b) { return a.size() < b.size(); });
    return result;
}

void stay_resident(std::span<const Memory> parts) noexcept {
    lock_stack();
    for (const Memory part : parts) ::mlock(part.data(), part.size());
}

}  // namespace zkrecipes::zklock
