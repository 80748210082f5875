#pragma once

/// All headers of zkrecipes::zkrecipes that need only the C++ standard library. To compile faster, include only those
/// that you use.

#include <zkrecipes/atomic_counter.hpp>
#include <zkrecipes/awaitable.hpp>
#include <zkrecipes/barrier.hpp>
#include <zkrecipes/deadline.hpp>
#include <zkrecipes/encryption.hpp>
#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/fenced_register.hpp>
#include <zkrecipes/grant.hpp>
#include <zkrecipes/group_member.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/lock_registry.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/persistent_node.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/result.hpp>
#include <zkrecipes/retry_policy.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/semaphore_mutex.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/session_events.hpp>
#include <zkrecipes/session_options.hpp>
#include <zkrecipes/session_stats.hpp>
#include <zkrecipes/shared_count.hpp>
#include <zkrecipes/shared_value.hpp>
#include <zkrecipes/stats_source.hpp>
#include <zkrecipes/transaction.hpp>
#include <zkrecipes/version.hpp>
