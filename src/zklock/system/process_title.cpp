#include "zklock/system/process_title.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace zkrecipes::zklock {
namespace {

struct Area {
    char* begin = nullptr;
    std::size_t size = 0;
};

/// Where the kernel put the arguments, and the environment behind them: fields 48 to 51 of /proc/self/stat.
Area argument_area() noexcept {
    const int fd = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    char text[1024];
    const ssize_t size = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    if (size <= 0) return {};
    text[size] = '\0';
    const char* at = std::strrchr(text, ')');  // the end of field 2
    std::uintptr_t fields[4] = {};
    for (int field = 2; at && field < 51; ++field) {
        at = std::strchr(at, ' ');
        if (!at) return {};
        ++at;
        if (field + 1 < 48) continue;
        std::uintptr_t& value = fields[field + 1 - 48];
        for (const char* digit = at; *digit >= '0' && *digit <= '9'; ++digit) {
            value = value * 10 + static_cast<std::uintptr_t>(*digit - '0');
        }
    }
    const auto [arguments, arguments_end, environment, environment_end] = fields;
    if (arguments == 0 || arguments_end <= arguments) return {};
    const bool adjacent = environment == arguments_end && environment_end > environment;
    return {reinterpret_cast<char*>(arguments), (adjacent ? environment_end : arguments_end) - arguments};
}

}  // namespace

void set_process_title(const char* title) noexcept {
    const Area area = argument_area();
    if (area.size == 0) return;
    // A title that reaches into the environment is shown to its end, because the arguments then do not end with a zero.
    const std::size_t length = std::min(std::strlen(title), area.size - 1);
    std::memcpy(area.begin, title, length);
    std::memset(area.begin + length, 0, area.size - length);
}

}  // namespace zkrecipes::zklock
