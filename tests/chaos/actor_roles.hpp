#pragma once

#include "chaos/actor_options.hpp"
#include "chaos/board.hpp"

namespace zkrecipes::chaos {

/// The roles of an actor process. Each reads commands from stdin, one a line, until "quit" or the end of the input, and
/// returns the exit code.
///
/// client: one Session and one ExclusiveMutex per lock, from the library. Commands: acquire (all locks, each on a
/// thread of its own, or by acquire_async when async=1), release (what is held), freeze (stop the process), quit. Says:
/// connected, state, granted, empty, error.
int run_client(const ActorOptions& options, Board& board, Reply& reply);

/// worker: takes and gives back the locks in turn, with increments of their unfenced counters, until "finish"; then
/// once more each of them, so that a lost waiter shows. Says: connected, progress, starved, error, done.
int run_worker(const ActorOptions& options, Board& board, Reply& reply);

/// writer: holds `lock` whenever it can, and writes guarded transactions into `data` all the time, until one is refused
/// because the hold was lost; then it waits for the lock again. Says: connected, first (token, version of the first
/// write of a hold), refused (token, version of the last one that was acknowledged), error.
int run_writer(const ActorOptions& options, Board& board, Reply& reply);

/// naive: holds the locks by a rule that the harness must catch, written on the C client alone.
///   rule=last-answer  last answer to a read + session timeout
///   rule=suspended    until the C client says that it is disconnected (the advice for Curator and kazoo)
///   rule=two-thirds   send time of the last committed write + two thirds of the timeout, whatever went before that
///   write
/// Commands and replies as for client.
int run_naive(const ActorOptions& options, Board& board, Reply& reply);

/// crowd: for each of `recipes` (by name, with commas) a thread, or several, that takes and gives back its locks in
/// every way that the recipe has, with increments of the unfenced counters and of those behind the fenced `register`,
/// until "finish"; then once more in each way. Commands: freeze, finish. Says: connected, resumed, starved, error,
/// done.
int run_crowd(const ActorOptions& options, Board& board, Reply& reply);

/// zklock: the same with processes of `zklock`, whose command is this program as run_command. Commands: freeze and thaw
/// (of zklock, not of its command), finish. Says: connected, frozen, resumed, starved, error, done.
int run_zklock(const ActorOptions& options, Board& board, Reply& reply);

/// command: what zklock runs; holds for hold-ms and ends. It finds the board by its name in /proc, and says nothing.
int run_command(const ActorOptions& options);

}  // namespace zkrecipes::chaos
