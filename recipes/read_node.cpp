// read_node: a get, and what is sent before it so that it is new enough.
//
// Requests of one session are executed in the order in which they were sent: a server answers the get when it has
// applied what was before it. So nobody waits for the first answer, and both are one round trip.
//   Fresh::no   nothing
//   Fresh::yes  sync of the same path. Not a proof of a majority: a leader that was stopped and goes on answers it,
//   too. a grant     a transaction that checks its nodes. It is committed by a majority and happens only while the hold
//               stands; the get sees at least its state.
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/session.hpp>

#include <utility>

#include "core/hold/hold_ref.hpp"
#include "core/value/node_reader.hpp"

namespace zkrecipes {

using internal::read_content;
using internal::SessionAccess;

std::optional<NodeContent> read_node(Session& session, const std::string& path, Fresh fresh, Deadline deadline,
                                     std::stop_token stop) {
    return read_content(SessionAccess::core(session), "read_node", path, fresh, nullptr, deadline, std::move(stop));
}

std::optional<NodeContent> read_node(Session& session, const std::string& path, const Grant& within, Deadline deadline,
                                     std::stop_token stop) {
    const auto& share = internal::GrantAccess::share(within);
    if (!share) {
        throw Error(Errc::lock_lost, "read_node", path,
                    "the grant is empty: nothing was acquired, or it was given back; stop the guarded work");
    }
    return read_content(SessionAccess::core(session), "read_node", path, Fresh::no, share->shared_hold(), deadline,
                        std::move(stop));
}

}  // namespace zkrecipes
