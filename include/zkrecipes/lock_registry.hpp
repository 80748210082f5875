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

/// Locks by key below one path, for a service with more keys than it wants to keep objects for:
///
///     LockRegistry locks(session, "/shop/locks");
///     auto lock = locks.get("orders/42");
///     std::lock_guard guard(lock);
///
/// All objects that get() gives for one key are the same lock, so a fiber or thread that holds it by one re-enters by
/// another. Only keys that are held, waited for or in somebody's hands take up memory here; in ZooKeeper an idle
/// directory is a container, which the servers remove. One object may be used by all threads and fibers at the same
/// time. `Lock` is ExclusiveMutex or ReadWriteLock: below one path use one of them, for they do not see each other.
template <class Lock>
class ZKRECIPES_API LockRegistryOf {
public:
    /// Does not block and sends nothing. Throws Error bad_path or bad_option as the locks themselves do.
    LockRegistryOf(Session& session, std::string path, LockOptions options = {});
    LockRegistryOf(LockRegistryOf&&) noexcept;
    LockRegistryOf& operator=(LockRegistryOf&&) noexcept;
    ~LockRegistryOf();  ///< Holds and waiting calls live on; nothing is released.

    /// The lock of `<path>/<key>`. A key is one or more path components: "orders/42". Does not block and sends nothing.
    /// Throws Error bad_path.
    Lock get(std::string_view key);

    /// Keys in use at the last tidying, and those asked for since. For monitoring.
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
