#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/result.hpp>

namespace zkrecipes {

class Session;

/// How a lock is held.
enum class HoldMode {
    exclusive,  ///< no other holder
    shared,     ///< other shared holders are possible
    lease       ///< of a semaphore; its token is no fencing token, because leases have no order
};
ZKRECIPES_API const char* to_string(HoldMode mode) noexcept;

/// Describes a hold as a short string for another process: its nodes, their modes, and its fencing token. The other
/// process can ask whether exactly this hold still exists (still_held), make its writes depend on it (Transaction), or
/// compare its token with the largest one seen (FencedRegister). A sequencer is only a value and holds no lock itself.
/// After it was moved from, it describes no hold: functions that need its nodes throw Error lock_lost.
///
/// Text: "zkr1:<token in hex>:<node>,<node>…". If handovers() is not 0, ".<handovers in hex>" follows the token. A node
/// is one letter for its mode (x, s, l) and its path as the servers see it, with every byte except letters, digits and
/// "/", "_", "-", "." written as %XX. With Bearer::may_release it begins with "zkr1r:". There is exactly one text for
/// each hold.
class ZKRECIPES_API Sequencer {
public:
    /// One lock node of a hold.
    struct Node {
        std::string path;                     ///< as the servers see it, including a path_prefix
        HoldMode mode = HoldMode::exclusive;  ///< how this node is held
        bool operator==(const Node&) const = default;
    };
    /// Whether a process that has the text may end the hold by release_held().
    enum class Bearer { may_check, may_release };
    static constexpr std::size_t max_bytes = 100'000;  ///< of the text
    static constexpr std::size_t max_nodes = 1000;     ///< of one hold

    /// Does no I/O. Throws Error lock_lost for an empty grant; too_large if its paths need more than max_bytes.
    explicit Sequencer(const Grant& grant, Bearer bearer = Bearer::may_check);
    /// Accepts exactly the texts that text() writes. Does no I/O. Throws Error bad_data with the position and the
    /// reason.
    static Sequencer parse(std::string_view text);

    std::string text() const;                                        ///< the string to send
    FencingToken token() const noexcept { return token_; }           ///< as Grant::token()
    std::uint64_t handovers() const noexcept { return handovers_; }  ///< as Grant::handovers()
    /// `lease` if all nodes are leases, `shared` if all are shared, otherwise `exclusive`.
    HoldMode mode() const noexcept;
    Bearer bearer() const noexcept { return bearer_; }
    /// One node, or several for a MultiLock and for several leases. None if the sequencer was moved from.
    const std::vector<Node>& nodes() const noexcept { return nodes_; }
    /// The directory of the first node, as the servers see it. Throws Error lock_lost if it was moved from.
    std::string directory() const;

    bool operator==(const Sequencer&) const = default;

private:
    Sequencer() = default;

    FencingToken token_ = 0;
    std::uint64_t handovers_ = 0;
    Bearer bearer_ = Bearer::may_check;
    std::vector<Node> nodes_;
};

/// Whether exactly this hold existed when the servers were asked: at one point of ZooKeeper's own history all its nodes
/// existed, and they were those made with its token. If shared holds have joined this one, the answer is true until the
/// last of them is released (docs/recipes/local.md). The answer needs a majority of the servers, so a server that is
/// cut off cannot answer with an old state. The hold may be over when the answer arrives. So use a Transaction or a
/// FencedRegister for writes that a former holder must not make.
///
/// Blocks for one round trip. Throws Error (unreachable: the deadline passed first; no_permission, closed; lock_lost
/// for a sequencer that was moved from).
ZKRECIPES_API bool still_held(Session& session, const Sequencer& sequencer, Deadline deadline = Deadline::never());

/// Ends the hold of another process, if that process has allowed it (Bearer::may_release): deletes its nodes, all of
/// them or none. The process of the holder must live until then, because its hold ends with its session. The process of
/// the holder sees the hold as lost. The same is true for shared holds that have joined it (docs/recipes/local.md).
/// Returns false if the hold was over already, or if its nodes do not match the token.
///
/// Blocks for two round trips. Throws Error not_owner if the holder has not allowed it, and as still_held.
ZKRECIPES_API bool release_held(Session& session, const Sequencer& sequencer, Deadline deadline = Deadline::never());

/// The same without blocking: `done` is called exactly once, on the session's notifier thread. If a stop is
/// requested before the answer, the error is unreachable. If the call cannot be started, they throw immediately:
/// closed, lock_lost, not_owner; bad_option for an empty callback. An exception thrown by the callback is logged.
ZKRECIPES_API void still_held_async(Session& session, const Sequencer& sequencer, Deadline deadline,
                                    std::stop_token stop, std::function<void(Result<bool>)> done);
ZKRECIPES_API void release_held_async(Session& session, const Sequencer& sequencer, Deadline deadline,
                                      std::stop_token stop, std::function<void(Result<bool>)> done);

}  // namespace zkrecipes
