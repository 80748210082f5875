#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include <zkrecipes/deadline.hpp>
#include <zkrecipes/export.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/shared_value.hpp>

namespace zkrecipes {

/// A number with the version of the node's data.
struct VersionedCount {
    std::int32_t count = 0;    ///< the number
    std::int32_t version = 0;  ///< as VersionedValue::version

    bool operator==(const VersionedCount&) const = default;
};

/// A SharedValue with a number of four bytes: the same as Curator's SharedCount on that path, and as kazoo's
/// Counter(support_curator=True). If the node has no data, the value is the seed; kazoo makes such a node before it
/// counts.
///
/// To count, use an AtomicCounter of CounterSize::four_bytes on the same path.
class ZKRECIPES_API SharedCount {
public:
    /// Is called with the present number. Empty: there is no node.
    using Observer = std::function<void(const std::optional<VersionedCount>& count)>;

    /// As SharedValue.
    SharedCount(Session& session, std::string path, std::int32_t seed, SharedValueOptions options = {});

    /// As SharedValue. get() also throws Error bad_data if the node does not hold a number of four bytes.
    VersionedCount get(Deadline deadline = Deadline::never(), std::stop_token stop = {});
    void get_async(Deadline deadline, std::stop_token stop, std::function<void(Result<VersionedCount>)> done);
    void set(std::int32_t count, Deadline deadline = Deadline::never(), std::stop_token stop = {});
    [[nodiscard]] bool try_set(std::int32_t version, std::int32_t count, Deadline deadline = Deadline::never(),
                               std::stop_token stop = {});
    void set_async(std::int32_t count, Deadline deadline, std::stop_token stop, std::function<void(SetResult)> done);
    void try_set_async(std::int32_t version, std::int32_t count, Deadline deadline, std::stop_token stop,
                       std::function<void(SetResult)> done);
    /// As SharedValue. The observer is not called for data that is no count.
    [[nodiscard]] Subscription observe(Observer observer);

    const std::string& path() const noexcept { return value_.path(); }  ///< as given to the constructor

private:
    std::int32_t seed_;
    SharedValue value_;
};

}  // namespace zkrecipes
