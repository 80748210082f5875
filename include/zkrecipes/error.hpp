#pragma once

#include <string>
#include <string_view>
#include <system_error>

#include <zkrecipes/export.hpp>

namespace zkrecipes {

/// Why a call failed. An expected outcome (busy, timed out, stopped) is never one of these: it is a value.
enum class Errc {
    bad_path = 1,        ///< the path is not a legal znode path, or lies in a place that locks must not use
    bad_connect_string,  ///< the list of servers cannot be read
    bad_option,          ///< an option is out of range, or two contradict each other
    unreachable,         ///< no server answered in the time allowed
    connection_lost,     ///< the connection broke and the retry policy gave up; what was begun is being undone
    session_lost,        ///< the session ended while the call needed it
    closed,              ///< the session was closed or belongs to the parent process, or the object was moved from
    auth_failed,         ///< the servers refused the credentials, or did not answer them: told instead of `closed`
    no_permission,       ///< an ACL forbids it
    lock_lost,           ///< this hold has ended, and with it the right to act
    not_owner,           ///< the caller does not hold what it tries to give back
    would_deadlock,      ///< waiting could never end
    budget_exceeded,     ///< one session would own more ephemeral nodes or watches than ZooKeeper survives
    too_large,           ///< a request would be larger than the servers accept
    quota_exceeded,      ///< a ZooKeeper quota on the path forbids it
    sequence_exhausted,  ///< the lock directory has used up its 2^31 sequence numbers
    bad_data,            ///< a znode holds something that the recipe cannot use
    no_parent,           ///< a parent is missing, and is not made here
    unsupported,         ///< this build or this server cannot do it
    protocol,            ///< the server answered something that the recipe does not expect
    outcome_unknown,     ///< it was sent and not answered: it has happened, may still happen, or never will
    node_exists,         ///< a node that was to be made is there already
    no_node,             ///< a node that was to be changed or looked at is not there
    bad_version,         ///< a node's data are not those of the version that was named
    not_empty,           ///< a node that was to be deleted has children
    out_of_resources     ///< no descriptors, threads or memory; in the middle of a step this closes the session
};

ZKRECIPES_API const std::error_category& error_category() noexcept;
ZKRECIPES_API std::error_code make_error_code(Errc code) noexcept;

/// The one exception of the library. `what()` names the operation, the path and what to do about it.
class ZKRECIPES_API Error : public std::system_error {
public:
    Error(Errc code, std::string_view operation, std::string_view path, std::string_view detail = {});

    Errc errc() const noexcept { return errc_; }
    const std::string& operation() const noexcept { return operation_; }
    const std::string& path() const noexcept { return path_; }
    const char* what() const noexcept override { return text_.c_str(); }

private:
    Errc errc_;
    std::string operation_;
    std::string path_;
    std::string text_;
};

}  // namespace zkrecipes

template <>
struct std::is_error_code_enum<zkrecipes::Errc> : std::true_type {};
