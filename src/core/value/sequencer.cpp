#include "core/value/sequencer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <zkrecipes/error.hpp>

#include "base/paths.hpp"
#include "core/queue/node_name.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::string_view kBegin = "zkr1";
constexpr char kMayRelease = 'r';
constexpr std::string_view kModes = "xsl";  // in the order of HoldMode
constexpr std::string_view kUpperHex = "0123456789ABCDEF";

bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' || c == '_' ||
           c == '-' || c == '.';
}

void escape(std::string_view path, std::string& out) {
    for (const char c : path) {
        if (is_plain(c)) {
            out.push_back(c);
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        out.append({'%', kUpperHex[byte >> 4], kUpperHex[byte & 15]});
    }
}

std::string hex_of(std::int64_t token) {
    std::array<char, 17> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), token, 16).ptr;
    return {digits.data(), end};
}

/// Reads from the front of a text, and knows where it is.
class Reader {
public:
    explicit Reader(std::string_view text) : text_(text) {}

    bool done() const { return at_ == text_.size(); }
    char peek() const { return done() ? '\0' : text_[at_]; }
    bool take(char c) {
        if (done() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    bool take(std::string_view word) {
        if (!text_.substr(at_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }
    std::size_t at() const { return at_; }

    /// 0: not a number above 0 as hex_of writes it.
    std::int64_t token() {
        std::int64_t value = 0;
        const char* const begin = text_.data() + at_;
        const char* const end = text_.data() + text_.size();
        const auto [stop, error] = std::from_chars(begin, end, value, 16);
        if (error != std::errc() || value <= 0) return 0;
        const auto length = static_cast<std::size_t>(stop - begin);
        if (hex_of(value) != text_.substr(at_, length)) return 0;  // capitals, leading zeros, a sign
        at_ += length;
        return value;
    }

    /// Empty: an escape that `escape` would not write; at() is there.
    std::optional<std::string> path() {
        std::string out;
        while (!done() && peek() != ',') {
            if (is_plain(peek())) {
                out.push_back(text_[at_++]);
                continue;
            }
            if (peek() != '%' || text_.size() - at_ < 3) return std::nullopt;
            const auto high = kUpperHex.find(text_[at_ + 1]), low = kUpperHex.find(text_[at_ + 2]);
            if (high == kUpperHex.npos || low == kUpperHex.npos) return std::nullopt;
            const char c = static_cast<char>(high * 16 + low);
            if (is_plain(c)) return std::nullopt;
            out.push_back(c);
            at_ += 3;
        }
        return out;
    }

private:
    const std::string_view text_;
    std::size_t at_ = 0;
};

/// Empty: `node` has been read.
std::string read_node(Reader& reader, Sequencer::Node& node) {
    const auto mode = kModes.find(reader.peek());
    if (reader.done() || mode == kModes.npos) return "a node begins with its mode: x, s or l";
    reader.take(reader.peek());
    node.mode = static_cast<HoldMode>(mode);
    auto path = reader.path();
    if (!path) return "a byte that must be written as %XX, with capitals, or one that must not";
    if (const std::string problem = path_problem(*path); !problem.empty()) return "not a path: " + problem;
    if (parent_path(*path) == "/") return "a lock node lies in the directory of its lock, not in the root";
    if (mode_of_node(base_name(*path)) != node.mode) return "the mode is not that of a node of this name";
    node.path = std::move(*path);
    return {};
}

}  // namespace

HoldMode mode_of_node(std::string_view name) {
    static const auto& shared = *new std::vector<std::string>{"__READ__", "__rlock__"};
    static const auto& lease = *new std::vector<std::string>{"lease-"};
    if (parse_queue_name(name, shared)) return HoldMode::shared;
    return parse_queue_name(name, lease) ? HoldMode::lease : HoldMode::exclusive;
}

std::string write_sequencer(const SequencerText& what) {
    std::string out(kBegin);
    if (what.may_release) out.push_back(kMayRelease);
    out.append(":").append(hex_of(what.token));
    if (what.handovers != 0) out.append(".").append(hex_of(static_cast<std::int64_t>(what.handovers)));
    char separator = ':';
    for (const auto& node : what.nodes) {
        out.push_back(std::exchange(separator, ','));
        out.push_back(kModes[static_cast<std::size_t>(node.mode)]);
        escape(node.path, out);
    }
    return out;
}

std::variant<SequencerText, SequencerProblem> parse_sequencer(std::string_view text) {
    if (text.size() > Sequencer::max_bytes) {
        return SequencerProblem{Sequencer::max_bytes, "longer than " + std::to_string(Sequencer::max_bytes) + " bytes"};
    }
    SequencerText out;
    Reader reader(text);
    const auto problem = [&reader](std::string what) { return SequencerProblem{reader.at(), std::move(what)}; };
    if (!reader.take(kBegin)) return problem("it does not begin with zkr1, so it is no sequencer, or a newer one");
    out.may_release = reader.take(kMayRelease);
    if (!reader.take(':')) return problem("a colon is missing");
    out.token = reader.token();
    if (out.token == 0) return problem("not a token: hexadecimal, in small letters, above 0, without leading zeros");
    if (reader.take('.')) {
        out.handovers = static_cast<std::uint64_t>(reader.token());
        if (out.handovers == 0) return problem("not a number of hand-overs: hexadecimal, as the token");
    }
    if (!reader.take(':')) return problem("a colon is missing");
    do {
        if (out.nodes.size() == Sequencer::max_nodes) {
            return problem("more than " + std::to_string(Sequencer::max_nodes) + " nodes");
        }
        const std::size_t begin = reader.at();
        Sequencer::Node node;
        if (std::string what = read_node(reader, node); !what.empty()) return problem(std::move(what));
        const auto same = [&node](const Sequencer::Node& other) { return other.path == node.path; };
        if (std::ranges::any_of(out.nodes, same)) return SequencerProblem{begin, "the same node for the second time"};
        out.nodes.push_back(std::move(node));
    } while (reader.take(','));
    return out;
}

void check_names_a_hold(const Sequencer& sequencer, const char* operation) {
    if (!sequencer.nodes().empty()) return;
    throw Error(Errc::lock_lost, operation, "",
                "the sequencer names no hold: it was moved from; use the one that it was moved to");
}

}  // namespace zkrecipes::internal
