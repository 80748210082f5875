#pragma once

#include <cstddef>
#include <memory>
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
/// All objects that get() returns for one key are the same lock: a fiber or thread that holds one of them re-enters it
/// by another. Only keys whose lock is held, waited for or referred to by an object take up memory. In ZooKeeper, the
/// servers remove the directory of an idle key, which is a container. Safe for concurrent use. `Lock` is ExclusiveMutex
/// or ReadWriteLock; use only one of them below one path.
template <class Lock>
class ZKRECIPES_API LockRegistryOf {
public:
    /// Does not block and sends nothing. Throws Error bad_path or bad_option as the lock does.
    LockRegistryOf(Session& session, std::string path, LockOptions options = {});
    LockRegistryOf(LockRegistryOf&&) noexcept;
    LockRegistryOf& operator=(LockRegistryOf&&) noexcept;
    ~LockRegistryOf();  ///< Releases nothing: grants and waiting calls go on.

    /// The lock of `<path>/<key>`. A key is one or more path components: "orders/42". Does not block and sends nothing.
    /// Throws Error bad_path.
    Lock get(std::string_view key);

    /// How many keys take up memory, including those that became idle lately. For monitoring.
    std::size_t size() const noexcept;
    const std::string& path() const noexcept;

private:
    std::unique_ptr<internal::LockRegistryImpl<Lock>> impl_;
};

using LockRegistry = LockRegistryOf<ExclusiveMutex>;
using ReadWriteLockRegistry = LockRegistryOf<ReadWriteLock>;

extern template class LockRegistryOf<ExclusiveMutex>;
extern template class LockRegistryOf<ReadWriteLock>;

}  // namespace zkrecipes
