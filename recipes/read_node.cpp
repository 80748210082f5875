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

namespace {

internal::Steps<std::optional<NodeContent>> read_within(Session& session, const char* operation,
                                                        const std::string& path, const Grant& within) {
    const auto& share = internal::GrantAccess::share(within);
    if (!share) {
        throw Error(Errc::lock_lost, operation, path,
                    "the grant is empty: nothing was acquired, or it was given back; stop the guarded work");
    }
    return read_content(internal::SessionAccess::core(session), operation, path, Fresh::no, share->shared_hold());
}

}  // namespace

using internal::SessionAccess;

std::optional<NodeContent> read_node(Session& session, const std::string& path, Fresh fresh, Deadline deadline,
                                     std::stop_token stop) {
    return read_content(SessionAccess::core(session), "read_node", path, fresh, nullptr).get(deadline, std::move(stop));
}

std::optional<NodeContent> read_node(Session& session, const std::string& path, const Grant& within, Deadline deadline,
                                     std::stop_token stop) {
    return read_within(session, "read_node", path, within).get(deadline, std::move(stop));
}

void read_node_async(Session& session, const std::string& path, Fresh fresh, Deadline deadline, std::stop_token stop,
                     std::function<void(Result<std::optional<NodeContent>>)> done) {
    constexpr const char* operation = "read_node_async";
    const auto core = SessionAccess::core(session);
    run_later(core, operation, path, read_content(core, operation, path, fresh, nullptr), deadline, std::move(stop),
              std::move(done));
}

void read_node_async(Session& session, const std::string& path, const Grant& within, Deadline deadline,
                     std::stop_token stop, std::function<void(Result<std::optional<NodeContent>>)> done) {
    constexpr const char* operation = "read_node_async";
    run_later(SessionAccess::core(session), operation, path, read_within(session, operation, path, within), deadline,
              std::move(stop), std::move(done));
}

}  // namespace zkrecipes
