#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/lock_options.hpp>
#include <zkrecipes/read_write_lock.hpp>

namespace zkrecipes {

class Session;

namespace internal {
template <class Lock>
class LockRegistryImpl;
}

/// Locks by key below one path, for a service with too many keys to keep a lock object for each:
///
///     LockRegistry locks(session, "/shop/locks");
///     auto lock = locks.get("orders/42");
///     std::lock_guard guard(lock);
///
/// All objects that get() returns for one key are the same lock: a fiber or thread that has locked it by lock() of one
/// of them can lock it again, or unlock it, by another. Re-entry works only by lock(), and only through one registry.
/// From time to time, get() frees the memory of keys that are not held, not waited for, and for which no lock object
/// exists. In ZooKeeper, the directory of a key is a container, which the servers remove when it is no longer used.
/// Safe for concurrent use. `Lock` is ExclusiveMutex or ReadWriteLock; use only one of them below one path.
template <class Lock>
class ZKRECIPES_API LockRegistryOf {
public:
    /// Does not block and sends nothing. Throws Error bad_path or bad_option, as the constructor of the lock.
    LockRegistryOf(Session& session, std::string path, LockOptions options = {});
    /// The same with several sessions of one ensemble, for more nodes than one session may own. The key decides which
    /// of them its lock belongs to; each hold has the lease of that session. Throws Error bad_option if `sessions` is
    /// empty.
    LockRegistryOf(std::span<Session> sessions, std::string path, LockOptions options = {});
    LockRegistryOf(LockRegistryOf&&) noexcept;
    LockRegistryOf& operator=(LockRegistryOf&&) noexcept;
    ~LockRegistryOf();  ///< Releases nothing: grants and waiting calls go on.

    /// The lock of `<path>/<key>`. A key is one or more path components: "orders/42". Does not block and sends nothing.
    /// Throws Error bad_path or bad_option, as the constructor of the lock.
    Lock get(std::string_view key);

    /// How many keys take up memory, including those that became unused recently. For monitoring.
    std::size_t size() const noexcept;
    const std::string& path() const noexcept;

private:
    std::unique_ptr<internal::LockRegistryImpl<Lock>> impl_;
};

/// Locks by key: mutexes, or read-write locks.
using LockRegistry = LockRegistryOf<ExclusiveMutex>;
using ReadWriteLockRegistry = LockRegistryOf<ReadWriteLock>;

extern template class LockRegistryOf<ExclusiveMutex>;
extern template class LockRegistryOf<ReadWriteLock>;

}  // namespace zkrecipes
