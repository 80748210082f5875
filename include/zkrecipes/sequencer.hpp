#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/grant.hpp>

namespace zkrecipes {

class Session;

/// How something is held.
enum class HoldMode {
    exclusive,
    shared,
    lease  ///< of a semaphore: several at a time, in no order, so that its token is no fence
};
ZKRECIPES_API const char* to_string(HoldMode mode) noexcept;

/// A hold as a short string, to be handed to another process: what is held, how, by which nodes, and with which fencing
/// token. Whoever is given it can ask whether exactly this hold still stands (still_held), can make its writes depend
/// on it (Transaction), or compare its token with the largest one seen (FencedRegister). A value; holds nothing.
///
/// One that was moved from names no hold: whatever would look at its nodes throws Error lock_lost.
///
/// Text: "zkr1:<token in hex>:<node>,<node>…", a node being one letter for its mode (x, s, l) and its path as the
/// servers see it, with every byte but letters, digits and "/", "_", "-", "." as %XX. A hold that may be given back by
/// whoever has the text begins with "zkr1r:". There is one text for each hold.
class ZKRECIPES_API Sequencer {
public:
    struct Node {
        std::string path;  ///< as the servers see it, whatever the namespace of a session
        HoldMode mode = HoldMode::exclusive;
        bool operator==(const Node&) const = default;
    };
    /// Whether the one who has the text may end the hold by release_held().
    enum class Bearer { may_check, may_release };
    static constexpr std::size_t max_bytes = 100'000;  ///< of the text
    static constexpr std::size_t max_nodes = 1000;

    /// Throws Error lock_lost for an empty grant; too_large for one with paths too long for max_bytes.
    explicit Sequencer(const Grant& grant, Bearer bearer = Bearer::may_check);
    /// Throws Error bad_data that says at which byte and why. Pure: no I/O, no clock. Takes nothing that text() would
    /// not write.
    static Sequencer parse(std::string_view text);

    std::string text() const;
    FencingToken token() const noexcept { return token_; }
    /// Of all nodes: lease; shared if all are; otherwise exclusive.
    HoldMode mode() const noexcept;
    Bearer bearer() const noexcept { return bearer_; }
    /// At least one: several for a MultiLock and for several leases. None if it was moved from.
    const std::vector<Node>& nodes() const noexcept { return nodes_; }
    /// What is locked: the directory of the first node, as the servers see it. Throws Error lock_lost if it was moved
    /// from.
    std::string directory() const;

    bool operator==(const Sequencer&) const = default;

private:
    Sequencer() = default;

    FencingToken token_ = 0;
    Bearer bearer_ = Bearer::may_check;
    std::vector<Node> nodes_;
};

/// Whether exactly this hold stood when the servers were asked: its nodes were there at one point of ZooKeeper's own
/// history, and they are those that were made with its token. Asks a majority of them, so a server that was cut off
/// does not answer with the past. It may be over by the time the answer is here: what must not be written by a former
/// holder belongs into a Transaction or behind a FencedRegister.
///
/// One round trip. Blocks; throws Error (unreachable when the deadline passes without an answer, no_permission,
/// closed; lock_lost for a sequencer that was moved from).
ZKRECIPES_API bool still_held(Session& session, const Sequencer& sequencer, Deadline deadline);

/// Gives back what another process holds, which asked for it (Bearer::may_release): deletes its nodes, all of them or
/// none. The holder is told as of a loss: its node is gone. False: the hold was over already, or is not this one. The
/// holder must live until then; when it ends, so does the hold.
///
/// Blocks for two round trips; throws Error not_owner when the text does not allow it, and as still_held.
ZKRECIPES_API bool release_held(Session& session, const Sequencer& sequencer, Deadline deadline);

}  // namespace zkrecipes
