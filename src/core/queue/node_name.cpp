#include "core/queue/node_name.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace zkrecipes::internal {

bool ends_with_word(std::string_view text, std::string_view word) noexcept {
    if (!text.ends_with(word)) return false;
    const auto before = text.substr(0, text.size() - word.size());
    return before.empty() || before.ends_with('-') || word.empty() || word.starts_with('_');
}

namespace {

/// Digits only, at most ten of them.
std::optional<std::int64_t> parse_digits(std::string_view text) {
    if (text.empty()) return std::nullopt;
    std::int64_t value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        value = value * 10 + (c - '0');
    }
    return value;
}

std::optional<std::size_t> pattern_at_end(std::string_view text, std::span<const std::string> patterns) {
    for (std::size_t i = 0; i < patterns.size(); ++i) {
        if (ends_with_word(text, patterns[i])) return i;
    }
    return std::nullopt;
}

std::optional<QueueName> with_suffix(std::string_view name, std::size_t suffix_chars, std::int64_t sequence,
                                     std::span<const std::string> patterns) {
    const auto pattern = pattern_at_end(name.substr(0, name.size() - suffix_chars), patterns);
    if (!pattern) return std::nullopt;
    return QueueName{name, static_cast<std::int32_t>(sequence), *pattern};
}

}  // namespace

std::string make_identity(std::string_view uuid, Dialect dialect) {
    if (dialect == Dialect::kazoo) {
        std::string digits(uuid);
        std::erase(digits, '-');
        return digits;
    }
    std::string identity;
    identity.reserve(3 + uuid.size() + 1);
    identity.append("_c_").append(uuid).append("-");
    return identity;
}

bool has_our_identity(std::string_view name) noexcept {
    constexpr std::string_view kCuratorStart = "_c_";
    const bool curator = name.starts_with(kCuratorStart);
    if (curator) name.remove_prefix(kCuratorStart.size());
    // The positions of the version and of the first digit of the variant, which is fixed as well.
    const std::string_view form =
        curator ? "xxxxxxxx-xxxx-8xxx-Vxxx-xxxxxxxxxxxx-" : "xxxxxxxxxxxx8xxxVxxxxxxxxxxxxxxx_";
    if (name.size() < form.size()) return false;
    for (std::size_t i = 0; i < form.size(); ++i) {
        const std::string_view allowed = form[i] == 'x'   ? "0123456789abcdef"
                                         : form[i] == 'V' ? "89ab"
                                                          : form.substr(i, 1);
        if (allowed.find(name[i]) == std::string_view::npos) return false;
    }
    return true;
}

bool is_unique(std::string_view name) noexcept {
    if (has_our_identity(name)) return true;
    if (!name.starts_with("_c_")) return false;
    name.remove_prefix(3);
    std::size_t digits = 0;
    for (const char c : name) {
        if (c == '-') continue;
        if (std::string_view("0123456789abcdefABCDEF").find(c) == std::string_view::npos) break;
        ++digits;
    }
    return digits >= 32;
}

std::string format_sequence(std::int32_t sequence) {
    char text[kSequenceChars + 1];
    std::snprintf(text, sizeof text, "%010d", sequence);
    return text;
}

std::optional<QueueName> parse_queue_name(std::string_view name, std::span<const std::string> patterns) {
    constexpr std::size_t width = 10;  // the server prints %010d: the sign counts
    if (name.size() <= width) return std::nullopt;
    const auto tail = name.substr(name.size() - width);
    if (tail.front() == '-') {  // -000000005
        const auto value = parse_digits(tail.substr(1));
        if (!value || *value == 0) return std::nullopt;
        return with_suffix(name, width, -*value, patterns);
    }
    const auto value = parse_digits(tail);
    if (!value) return std::nullopt;
    if (*value <= std::numeric_limits<std::int32_t>::max()) {
        if (auto found = with_suffix(name, width, *value, patterns)) return found;
    }
    // Eleven characters: -1000000000 and below.
    if (name[name.size() - width - 1] == '-' && *value >= 1'000'000'000 &&
        -*value >= std::numeric_limits<std::int32_t>::min()) {
        return with_suffix(name, width + 1, -*value, patterns);
    }
    return std::nullopt;
}

std::vector<QueueName> sorted_queue(std::span<const std::string> children, std::span<const std::string> patterns) {
    std::vector<QueueName> queue;
    for (const auto& child : children) {
        if (auto parsed = parse_queue_name(child, patterns)) queue.push_back(*parsed);
    }
    const auto on_circle = [](const QueueName& a, const QueueName& b) {
        const auto x = static_cast<std::uint32_t>(a.sequence);
        const auto y = static_cast<std::uint32_t>(b.sequence);
        return x != y ? x < y : a.name < b.name;
    };
    std::sort(queue.begin(), queue.end(), on_circle);
    if (queue.size() < 2) return queue;
    std::size_t first = 0;
    std::uint32_t widest = sequence_distance(queue.back().sequence, queue.front().sequence);
    for (std::size_t i = 1; i < queue.size(); ++i) {
        const auto gap = sequence_distance(queue[i - 1].sequence, queue[i].sequence);
        if (gap > widest) {
            widest = gap;
            first = i;
        }
    }
    std::rotate(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(first), queue.end());
    return queue;
}

}  // namespace zkrecipes::internal
