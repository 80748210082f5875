// read_node: a get, and a request before it that makes its answer new enough.
//
// The servers execute the requests of one session in the order in which they were sent: a server answers the get
// after it has applied the request before it. So both are one round trip.
//   Fresh::no    nothing is sent before
//   Fresh::yes   sync of the same path. This does not prove a majority: a leader that was suspended and continues
//                answers it, too.
//   a grant      a transaction that checks its nodes. A majority commits it, and only while the hold exists; the get
//                sees that state or a later one.
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
