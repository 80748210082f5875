#pragma once

#include <zkrecipes/asio/call.hpp>
#include <zkrecipes/barrier.hpp>
#include <zkrecipes/deadline.hpp>
#include <zkrecipes/group_member.hpp>
#include <zkrecipes/persistent_node.hpp>

namespace zkrecipes {

// Barriers, persistent nodes and groups. The rules for all of these functions: zkrecipes/asio.hpp.
// The comments name the type of the result.

/// bool.
template <class Token>
auto async_set(Barrier& barrier, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&barrier, deadline](auto... last) { barrier.set_async(deadline, last...); });
}

/// bool.
template <class Token>
auto async_remove(Barrier& barrier, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&barrier, deadline](auto... last) { barrier.remove_async(deadline, last...); });
}

/// bool.
template <class Token>
auto async_wait(Barrier& barrier, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&barrier, deadline](auto... last) { barrier.wait_async(deadline, last...); });
}

/// bool.
template <class Token>
auto async_enter(DoubleBarrier& barrier, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&barrier, deadline](auto... last) { barrier.enter_async(deadline, last...); });
}

/// bool.
template <class Token>
auto async_leave(DoubleBarrier& barrier, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&barrier, deadline](auto... last) { barrier.leave_async(deadline, last...); });
}

/// bool.
template <class Token>
auto async_wait_present(PersistentNode& node, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&node, deadline](auto... last) { node.wait_present_async(deadline, last...); });
}

/// bool.
template <class Token>
auto async_close_and_wait(PersistentNode& node, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&node, deadline](auto... last) { node.close_and_wait_async(deadline, last...); });
}

/// bool.
template <class Token>
auto async_wait_joined(GroupMember& member, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&member, deadline](auto... last) { member.wait_joined_async(deadline, last...); });
}

/// bool.
template <class Token>
auto async_leave_and_wait(GroupMember& member, Deadline deadline, Token&& token) {
    return asio_calls::initiate<bool, Token>(
        token, [&member, deadline](auto... last) { member.leave_and_wait_async(deadline, last...); });
}

/// GroupMembers, of a Group or GroupMember.
template <class AnyGroup, class Token>
auto async_members(AnyGroup& group, Deadline deadline, Token&& token) {
    return asio_calls::initiate<GroupMembers, Token>(
        token, [&group, deadline](auto... last) { group.members_async(deadline, last...); });
}

}  // namespace zkrecipes
