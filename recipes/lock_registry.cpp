// LockRegistry: one lock object for each key that is in use.
//
// Two objects are the same lock for a fiber if they share their implementation, which knows the holders. So the
// registry keeps the implementation of a key as long as it is held or another object refers to it, and drops it
// afterwards. It looks for keys to drop when the number of keys has doubled since the last time, so each get() pays a
// constant share.
#include <zkrecipes/lock_registry.hpp>
#include <zkrecipes/session.hpp>

#include <algorithm>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "session/session_core.hpp"

namespace zkrecipes {
namespace internal {

template <class Lock>
class LockRegistryImpl {
public:
    LockRegistryImpl(std::vector<std::shared_ptr<SessionCore>> sessions, std::string base, LockOptions lock_options)
        : cores(std::move(sessions)), path(std::move(base)), options(std::move(lock_options)) {}

    const std::shared_ptr<SessionCore>& core_of(const std::string& key) const {
        return cores[std::hash<std::string>()(key) % cores.size()];
    }

    /// Just put together: an empty key, or one that begins or ends with "/", must be refused with the path it makes,
    /// not become another key's.
    std::string path_of(const std::string& key) const { return (path == "/" ? "" : path) + "/" + key; }

    const std::vector<std::shared_ptr<SessionCore>> cores;
    const std::string path;
    const LockOptions options;

    mutable std::mutex mutex;  // guards what follows
    std::unordered_map<std::string, Lock> locks;
    std::size_t tidy_at = kFewest;

    static constexpr std::size_t kFewest = 64;
};

}  // namespace internal

using internal::SessionAccess;

template <class Lock>
LockRegistryOf<Lock>::LockRegistryOf(Session& session, std::string path, LockOptions options)
    : LockRegistryOf(std::span(&session, 1), std::move(path), std::move(options)) {}
template <class Lock>
LockRegistryOf<Lock>::LockRegistryOf(std::span<Session> sessions, std::string path, LockOptions options) {
    if (sessions.empty()) throw Error(Errc::bad_option, "LockRegistry", path, "give it at least one session");
    std::vector<std::shared_ptr<internal::SessionCore>> cores;
    for (const Session& session : sessions) cores.push_back(SessionAccess::core(session));
    impl_ = std::make_unique<internal::LockRegistryImpl<Lock>>(std::move(cores), std::move(path), std::move(options));
    // Says now what the first get() would say.
    for (const auto& core : impl_->cores) {
        core->server_path(impl_->path, "LockRegistry");
        Lock::in(core, impl_->path_of("key"), impl_->options);
    }
}
template <class Lock>
LockRegistryOf<Lock>::LockRegistryOf(LockRegistryOf&&) noexcept = default;
template <class Lock>
LockRegistryOf<Lock>& LockRegistryOf<Lock>::operator=(LockRegistryOf&&) noexcept = default;
template <class Lock>
LockRegistryOf<Lock>::~LockRegistryOf() = default;

template <class Lock>
Lock LockRegistryOf<Lock>::get(std::string_view key) {
    internal::check_usable(impl_ ? impl_->cores.front().get() : nullptr, "LockRegistry", "get", path());
    auto& self = *impl_;
    std::string name(key);
    {
        const std::lock_guard guard(self.mutex);
        if (const auto found = self.locks.find(name); found != self.locks.end()) return found->second.same();
    }
    // Both without the mutex: they take the lock of the session, under which a retry policy may come here.
    auto lock = Lock::in(self.core_of(name), self.path_of(name), self.options);
    std::unordered_map<std::string, Lock> unused;
    const std::lock_guard guard(self.mutex);
    if (self.locks.size() >= self.tidy_at) {
        for (auto at = self.locks.begin(); at != self.locks.end();) {
            const auto next = std::next(at);
            if (at->second.unused()) unused.insert(self.locks.extract(at));
            at = next;
        }
        self.tidy_at = std::max(self.kFewest, 2 * self.locks.size());
    }
    return self.locks.try_emplace(std::move(name), std::move(lock)).first->second.same();
}

template <class Lock>
std::size_t LockRegistryOf<Lock>::size() const noexcept {
    if (!impl_ || impl_->cores.front()->inherited()) return 0;
    const std::lock_guard guard(impl_->mutex);
    return impl_->locks.size();
}

template <class Lock>
const std::string& LockRegistryOf<Lock>::path() const noexcept {
    static const auto& none = *new std::string;
    return impl_ ? impl_->path : none;
}

template class LockRegistryOf<ExclusiveMutex>;
template class LockRegistryOf<ReadWriteLock>;

}  // namespace zkrecipes
