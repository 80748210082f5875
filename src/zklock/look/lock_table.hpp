#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <zkrecipes/inspect.hpp>

#include "zklock/system/boot_clock.hpp"

namespace zkrecipes::zklock {

/// A lock that has a holder or a waiter.
struct LockRow {
    std::string path;
    std::string mode;  ///< "exclusive", "shared" or "semaphore"
    std::size_t holders = 0;
    std::size_t waiters = 0;
    std::string holder;                    ///< path of the node of the first holder; empty: none
    std::vector<std::string> directories;  ///< from which this is known: of a semaphore two
};

/// What is known of the locks below a path from lists of their directories. It also decides which directory to list
/// next, so that a bounded number of requests shows what matters soon. Does no I/O.
class LockTable {
public:
    /// `skipped`: a directory that is not looked at; empty: none.
    LockTable(const std::string& prefix, std::string skipped);

    // The answer to a list.
    void listed(const LockNames& names, Instant now);
    void unreadable(const std::string& path, Instant now);
    void failed(const std::string& path);  ///< no answer: it is listed again

    /// The locks, those with the most waiters first.
    std::vector<LockRow> rows() const;
    std::vector<std::string> unreadable_paths() const;
    /// How long ago the directory was listed that has not been listed for the longest time.
    Nanoseconds oldest_look(Instant now) const;

    /// The directories that next_due() prefers.
    void show(const std::vector<LockRow>& visible);
    /// A directory that has never been listed; empty: none. It is under way until one of the answers above.
    std::optional<std::string> next_unlisted();
    /// The directory to list next; empty: all have been listed recently. It is under way as above.
    std::optional<std::string> next_due(Instant now);

    /// A shown directory is listed again after this time at the earliest, others later.
    static constexpr std::chrono::seconds kShownEvery{1};
    static constexpr std::chrono::seconds kParentsEvery{3};
    static constexpr std::chrono::seconds kChangedEvery{3};
    static constexpr std::chrono::seconds kOthersEvery{10};
    static constexpr std::chrono::seconds kChangedLately{60};

private:
    enum class Kind { shown, parent, changed, other };
    struct Directory {
        std::vector<Participant> queue;
        std::vector<Participant> leases;
        bool has_others = false;  // children that are neither
        bool listed = false;
        bool hidden = false;  // an access list forbids to read it
        Instant listed_at{};
        Instant changed_at{};  // as far as is known
    };

    void add(const std::string& path);
    void remove(const std::string& path);
    void forget(const std::string& path, const Directory& directory);
    void put_down(const std::string& path, Directory& directory, Instant now);
    std::string take(const std::string& path);
    std::optional<std::string> oldest(Kind kind, Instant now) const;
    std::optional<std::string> oldest_of(const std::set<std::string>& paths, Instant listed_before) const;
    std::optional<LockRow> row_of(const std::string& path, const Directory& directory) const;
    const Directory* sibling(const std::string& path, const char* own, const char* other) const;

    const std::string prefix_, skipped_;
    std::map<std::string, Directory> directories_;
    std::set<std::string> unlisted_;
    std::set<std::string> shown_, parents_, changed_;
    std::set<std::pair<Instant, std::string>> by_age_;  // listed and not under way
    std::size_t turn_ = 0;
};

}  // namespace zkrecipes::zklock
