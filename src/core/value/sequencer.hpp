#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <zkrecipes/sequencer.hpp>

namespace zkrecipes::internal {

/// What the text of a sequencer says.
struct SequencerText {
    std::int64_t token = 0;
    std::uint64_t handovers = 0;
    bool may_release = false;
    std::vector<Sequencer::Node> nodes;
};
/// Why a text is none.
struct SequencerProblem {
    std::size_t at = 0;  // byte
    std::string what;
};

/// The one text for this.
std::string write_sequencer(const SequencerText& what);
/// Strict: what is taken is exactly what write_sequencer writes. Any bytes may be given.
std::variant<SequencerText, SequencerProblem> parse_sequencer(std::string_view text);

/// Throws Error lock_lost for one that was moved from: it names no node, so that nothing would be checked.
void check_names_a_hold(const Sequencer& sequencer, const char* operation);

/// How a node of this name holds.
HoldMode mode_of_node(std::string_view name);

}  // namespace zkrecipes::internal
