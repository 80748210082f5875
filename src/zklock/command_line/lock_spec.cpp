#include "zklock/command_line/lock_spec.hpp"

#include <signal.h>
#include <string.h>

#include <charconv>

#include "zklock/command_line/command_table.hpp"

namespace zkrecipes::zklock {

const char* mode_name(Mode mode) noexcept {
    switch (mode) {
        case Mode::exclusive:
        case Mode::writer: return "exclusive";
        case Mode::shared: return "shared";
        case Mode::semaphore: return "semaphore";
        case Mode::leader: return "leader";
    }
    return "";
}

std::int32_t parse_lease_count(const std::string& origin, const std::string& text) {
    std::int32_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && rest == end && value > 0) return value;
    usage(origin + ": \"" + text + "\" is not a number of at least 1 and at most 2147483647");
}

int parse_exit_code(const std::string& option, const std::string& text) {
    int value = -1;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || rest != end || value < 0 || value > 255) {
        usage(option + ": \"" + text + "\" is not an exit code from 0 to 255");
    }
    return value;
}

int parse_signal(const std::string& text) {
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && rest == end && number > 0 && number < NSIG) return number;
    const std::string name = text.starts_with("SIG") ? text.substr(3) : text;
    for (int candidate = 1; candidate < NSIG; ++candidate) {
        const char* abbreviation = ::sigabbrev_np(candidate);
        if (abbreviation && name == abbreviation) return candidate;
    }
    usage("\"" + text + "\" is not a signal");
}

// A path that contains colons needs a mode: a typing error in the mode must not become part of the path.
LockSpec parse_lock_spec(const std::string& text) {
    const std::size_t colon = text.rfind(':');
    const std::string path = text.substr(0, colon);
    if (!path.starts_with('/')) usage("-L: \"" + text + "\" is not an absolute path");
    check_lock(path, true);
    if (colon == std::string::npos) return {path, Mode::exclusive};
    const std::string word = text.substr(colon + 1);
    if (word == "shared") return {path, Mode::shared};
    if (word == "rw") return {path, Mode::writer};
    if (word == "exclusive") return {path, Mode::exclusive};
    usage("-L: unknown mode \":" + word +
          "\": write :shared, :rw or :exclusive; if the colon belongs to the path, write \"" + text + ":exclusive\"");
}

}  // namespace zkrecipes::zklock
