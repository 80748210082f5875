#pragma once

#include <optional>
#include <string>

#include <zkrecipes/asio/call.hpp>
#include <zkrecipes/deadline.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/transaction.hpp>

namespace zkrecipes {

// Sessions, the state of locks, sequencers, reads and transactions. The rules for all of these functions:
// zkrecipes/asio.hpp. The comments name the type of the result.

/// bool.
template <class Token>
auto async_wait_connected(Session& session, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&session, deadline](auto... last) { session.wait_connected_async(deadline, last...); });
}

/// LockView.
template <class Token>
auto async_inspect_lock(Session& session, std::string path, bool up_to_date, Deadline deadline, Token&& token) {
    return asio_calls::initiate<LockView, Token>(token, [&session, path, up_to_date, deadline](auto... last) {
        inspect_lock_async(session, path, up_to_date, deadline, last...);
    });
}

/// LockNames.
template <class Token>
auto async_list_lock(Session& session, std::string path, Deadline deadline, Token&& token) {
    return asio_calls::initiate<LockNames, Token>(
        token, [&session, path, deadline](auto... last) { list_lock_async(session, path, deadline, last...); });
}

/// FoundLocks. Without a filter: all.
template <class Token>
auto async_find_locks(Session& session, std::string prefix, Deadline deadline, Token&& token) {
    return asio_calls::initiate<FoundLocks, Token>(token, [&session, prefix, deadline](auto... last) {
        find_locks_async(session, prefix, {}, deadline, last...);
    });
}

/// FoundLocks.
template <class Token>
auto async_find_locks(Session& session, std::string prefix, ParticipantFilter filter, Deadline deadline,
                      Token&& token) {
    return asio_calls::initiate<FoundLocks, Token>(token, [&session, prefix, filter, deadline](auto... last) {
        find_locks_async(session, prefix, filter, deadline, last...);
    });
}

/// bool.
template <class Token>
auto async_wait_until_free(Session& session, std::string path, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&session, path, deadline](auto... last) { wait_until_free_async(session, path, deadline, last...); });
}
template <class Token>
auto async_request_revocation(Session& session, Participant participant, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(token, [&session, participant, deadline](auto... last) {
        request_revocation_async(session, participant, deadline, last...);
    });
}
template <class Token>
auto async_remove_participant(Session& session, Participant participant, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(token, [&session, participant, deadline](auto... last) {
        remove_participant_async(session, participant, deadline, last...);
    });
}

/// bool.
template <class Token>
auto async_still_held(Session& session, Sequencer sequencer, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(token, [&session, sequencer, deadline](auto... last) {
        still_held_async(session, sequencer, deadline, last...);
    });
}
template <class Token>
auto async_release_held(Session& session, Sequencer sequencer, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(token, [&session, sequencer, deadline](auto... last) {
        release_held_async(session, sequencer, deadline, last...);
    });
}

/// std::optional<NodeContent>.
template <class Token>
auto async_read_node(Session& session, std::string path, Fresh fresh, Deadline deadline, Token&& token) {
    return asio_calls::initiate<std::optional<NodeContent>, Token>(
        token,
        [&session, path, fresh, deadline](auto... last) { read_node_async(session, path, fresh, deadline, last...); });
}
template <class Token>
auto async_read_node(Session& session, std::string path, const Grant& within, Deadline deadline, Token&& token) {
    return asio_calls::initiate<std::optional<NodeContent>, Token>(
        token, [&session, path, &within, deadline](auto... last) {
            read_node_async(session, path, within, deadline, last...);
        });
}

/// std::optional<TransactionResult>.
template <class Token>
auto async_commit(Transaction& transaction, Deadline deadline, Token&& token) {
    return asio_calls::initiate<std::optional<TransactionResult>, Token>(
        token, [&transaction, deadline](auto... last) { transaction.commit_async(deadline, last...); });
}

}  // namespace zkrecipes
