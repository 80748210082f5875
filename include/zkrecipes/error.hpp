#pragma once

#include <string>
#include <string_view>
#include <system_error>

#include <zkrecipes/export.hpp>

namespace zkrecipes {

/// Why a call failed. If a call waits for other clients and finds the lock busy, times out or is stopped, this is no
/// error: see Deadline.
enum class Errc {
    bad_path = 1,        ///< the path is not a legal znode path, or is one that locks must not use
    bad_connect_string,  ///< the list of servers cannot be read
    bad_option,          ///< an option or argument is out of range, or two contradict each other
    unreachable,         ///< no server answered before the deadline passed, or before a stop was requested
    connection_lost,     ///< the connection broke and the retry policy gave up; nodes of the call are deleted in the
                         ///< background
    session_lost,        ///< the session ended while the call needed it
    closed,              ///< the session was closed or belongs to the parent process, or the object was moved from
    auth_failed,         ///< the servers refused the credentials, or demand some; the session is closed
    no_permission,       ///< an access list forbids it; what() names the right, the path and the session's identity
    lock_lost,           ///< the hold has ended: stop the work that the lock protects
    not_owner,           ///< the caller does not hold what it tries to release
    would_deadlock,      ///< the call would wait for its own caller, or is not allowed at this place
    budget_exceeded,     ///< the session has too many ephemeral nodes or watches; use a further Session
    too_large,           ///< a request would be larger than the servers accept
    quota_exceeded,      ///< a ZooKeeper quota on the path forbids it
    sequence_exhausted,  ///< the lock directory has used up its 2^31 sequence numbers
    bad_data,            ///< a znode holds data that the recipe cannot use
    no_parent,           ///< a parent is missing, and the call does not create it
    unsupported,         ///< this library, build or server cannot do it
    protocol,            ///< a server sent an unexpected answer
    outcome_unknown,     ///< the request was sent and not answered: it has happened, may still happen, or never will
    node_exists,         ///< the node to create exists already
    no_node,             ///< the node to change or read does not exist
    bad_version,         ///< the node's data has another version
    not_empty,           ///< the node to delete has children
    out_of_resources  ///< no descriptors, threads or memory; if this happens inside the library, it closes the session
};

/// The name of the code, for example "no_permission". (std::error_code::message() has it in words.)
ZKRECIPES_API const char* to_string(Errc code) noexcept;

/// The category "zkrecipes" of std::error_code, and a code of it.
ZKRECIPES_API const std::error_category& error_category() noexcept;
ZKRECIPES_API std::error_code make_error_code(Errc code) noexcept;

/// The only exception type of the library. `what()` names the operation, the path and the remedy.
class ZKRECIPES_API Error : public std::system_error {
public:
    /// For the library, and for tests of programs that use it. `detail` is put behind the text of the code.
    Error(Errc code, std::string_view operation, std::string_view path, std::string_view detail = {});

    Errc errc() const noexcept { return errc_; }                          ///< which error
    const std::string& operation() const noexcept { return operation_; }  ///< what the library tried to do
    const std::string& path() const noexcept { return path_; }            ///< the path, or empty
    const char* what() const noexcept override { return text_.c_str(); }  ///< the whole message

private:
    Errc errc_;
    std::string operation_;
    std::string path_;
    std::string text_;
};

}  // namespace zkrecipes

template <>
struct std::is_error_code_enum<zkrecipes::Errc> : std::true_type {};
