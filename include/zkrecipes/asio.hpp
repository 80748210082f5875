#pragma once

#include <zkrecipes/asio/locks.hpp>
#include <zkrecipes/asio/nodes.hpp>
#include <zkrecipes/asio/operations.hpp>
#include <zkrecipes/asio/values.hpp>

/// The asynchronous calls of the library for programs with Boost.Asio (1.81 or later). Header-only; link
/// zkrecipes::asio, or zkrecipes::zkrecipes and Boost's headers. docs/async.md lists all functions.
///
///     Grant grant = co_await zkrecipes::async_acquire(mutex, 5s, asio::use_awaitable);
///
/// For each `verb_async` of a class or header there is a function `async_verb`. Its parameters are the object, the
/// parameters of `verb_async` before the deadline, the deadline, and a completion token. The completion signature is
/// void(std::exception_ptr, T): T is the type that the comment beside the function names, and has the value that the
/// blocking form would return. The exception is what the blocking form would throw; null: none. If the call cannot be
/// started, for example because the session is closed, the handler is told that, too.
///
/// The functions do not block. They may be called on any thread.
///   - Executor: the handler runs on its associated executor, never on the session's notifier thread and never before
///     the function has returned. A handler without an executor runs on asio::system_executor.
///   - Allocator: memory for the handler comes from its associated allocator. It is freed before the handler is called.
///     If memory is too short to post the handler, it is destroyed without being called: the function throws, or, if it
///     has returned, the session's log says so.
///   - Cancellation: any cancellation type requests a stop of the call, as its stop_token does in the blocking form.
///     The handler is called soon after. Nothing is left in the queue of a lock. A call that is done already ends with
///     its result, so a cancelled acquire may still end with a grant.
///   - Lifetime: objects that are passed by reference must live until the call is started. Tokens such as deferred and
///     use_awaitable start the call only when it is awaited. A deadline that was made of a duration counts from the
///     call of the function.
///   - The end of a loop: until the handler is called, io_context::run() has work. io_context::stop() is allowed at any
///     time. When the io_context is destroyed, open calls are stopped, and their handlers are destroyed without being
///     called. A grant that arrives too late is released.
namespace zkrecipes {}
