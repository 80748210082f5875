#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <boost/json/fwd.hpp>
#include <zkrecipes/inspect.hpp>

#include "zklock/report/text.hpp"

namespace zkrecipes::zklock {

/// The path of the contender's node.
std::string node_path(const Participant& participant);

/// Whether no session's end deletes the node: somebody else than a client has made it, for example by copying a tree.
bool not_ephemeral(const Participant& participant);

/// `web1 pid 4711 "deploy.sh" (ops) for 3m12s`, or the text in the node of another client. Also says if the node may
/// not be read, or is not ephemeral.
std::string describe(const Participant& participant, std::chrono::system_clock::time_point now);

/// describe() after `title`, then mode, node, token and labels, each on its own line.
std::string block(const Participant& participant, const std::string& title, std::chrono::system_clock::time_point now);

/// As in `zklock status --json`; see docs/zklock.md.
boost::json::object to_json(const Participant& participant, std::chrono::system_clock::time_point now);
boost::json::object to_json(const LockView& lock, std::chrono::system_clock::time_point now);

std::vector<Participant> holders(const LockView& lock);
std::vector<Participant> waiters(const LockView& lock);
/// Whether it is held, and only by shared holders.
bool held_shared(const LockView& lock);

/// free, held, held (shared), held (2 of 4 leases). Says if the path does not exist, and names it if the servers know
/// it by another one.
std::string state_of(const LockView& lock, const std::string& path_on_servers);

std::string hex(std::int64_t number);
std::string iso_time(std::chrono::system_clock::time_point time);

}  // namespace zkrecipes::zklock
