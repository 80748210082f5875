#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <zkrecipes/lock_options.hpp>

namespace zkrecipes::internal {

// The names of lock nodes, as Curator writes them: `_c_<uuid>-lock-<sequence>`. The identity (`_c_<uuid>-`) identifies
// the create, the pattern (`lock-`) the kind of contender, and the sequence its position in the queue. kazoo writes
// `<uuid without dashes>__lock__<sequence>`.

/// Past 2^31 the server hands out the same number several times, so a directory is used up long before.
inline constexpr std::int32_t kSequenceLimit = 2'000'000'000;
inline constexpr std::int32_t kSequenceWarning = 1 << 30;
/// The server appends at most a sign and ten digits.
inline constexpr std::size_t kSequenceChars = 11;

/// "_c_<uuid>-", or the bare digits
std::string make_identity(std::string_view uuid, Dialect dialect = Dialect::curator);
inline constexpr std::size_t kIdentityChars = 40;
/// Whether this library made the identity that the name begins with, in either dialect: random_uuid() marks it.
bool has_our_identity(std::string_view name) noexcept;

/// Whether no two nodes ever have this name: it begins with 128 random bits that were drawn for this node, as those of
/// this library, Curator (with protection) and go-zk do. kazoo draws them once for each lock object, and its semaphores
/// make a node of the same name again for each lease.
bool is_unique(std::string_view name) noexcept;

/// What the server appends to a sequential node: ten characters with leading zeros, signed.
std::string format_sequence(std::int32_t sequence);

/// Whether `a` was handed out before `b`. The server's counter is a signed 32-bit number that overflows, so the order
/// is that of the difference (serial arithmetic): 2147483647 is followed by -2147483648.
constexpr bool sequence_before(std::int32_t a, std::int32_t b) noexcept {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b)) < 0;
}
/// How many numbers lie between `a` and a later `b`.
constexpr std::uint32_t sequence_distance(std::int32_t a, std::int32_t b) noexcept {
    return static_cast<std::uint32_t>(b) - static_cast<std::uint32_t>(a);
}

/// A child of a lock directory that is a contender.
struct QueueName {
    std::string_view name;  // the whole name; refers to the text that was parsed
    std::int32_t sequence = 0;
    std::size_t pattern = 0;  // index of the pattern before the sequence

    /// Earlier in the queue. The name decides between equal numbers, so that two are never both first.
    bool before(const QueueName& other) const noexcept {
        return sequence == other.sequence ? name < other.name : sequence_before(sequence, other.sequence);
    }
};

/// Whether the text ends with the word: with `lock-`, but not `clock-`. A word begins the text, or follows a `-`, or
/// begins with `_` itself, or is empty. All clients agree on this for each name that Curator, kazoo or this library
/// makes.
bool ends_with_word(std::string_view text, std::string_view word) noexcept;

/// Empty: a foreign child (no pattern before the number, no number, not a number that the server can have written). The
/// pattern must be a word of the name. The text before it does not matter otherwise: other clients write other
/// prefixes, and all of them must be waited for.
std::optional<QueueName> parse_queue_name(std::string_view name, std::span<const std::string> patterns);

/// The contenders among the children, in the order of the queue. The order is total whatever the names are: the
/// numbers lie on a circle, and the queue begins after the widest gap.
std::vector<QueueName> sorted_queue(std::span<const std::string> children, std::span<const std::string> patterns);

}  // namespace zkrecipes::internal
