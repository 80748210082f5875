#include "core/queue/lock_layout.hpp"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "base/paths.hpp"
#include "core/operation/read_op.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/participants.hpp"
#include "core/queue/semaphore_terms.hpp"

namespace zkrecipes::internal {
namespace {

constexpr const char* kKazooQueue = "-__lock__";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool contains(std::span<const std::string> names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

bool has_lock_nodes(std::span<const std::string> names) {
    return std::ranges::any_of(names, [](const auto& n) { return parse_queue_name(n, lock_patterns()).has_value(); });
}

/// What kazoo's Semaphore calls a lease: a UUID in hexadecimal digits, and nothing else.
bool is_kazoo_lease(std::string_view name) {
    return name.size() == 32 && std::ranges::all_of(name, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

bool all_kazoo_leases(std::span<const std::string> names) { return std::ranges::all_of(names, is_kazoo_lease); }

/// kazoo writes the bare number.
std::int32_t read_kazoo_limit(std::string_view data) {
    std::int32_t limit = 0;
    const auto [end, error] = std::from_chars(data.data(), data.data() + data.size(), limit);
    return error == std::errc() && end == data.data() + data.size() && limit > 0 ? limit : 0;
}

class LayoutReader final : public ReadOp {
public:
    LayoutReader(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path, std::string directory)
        : ReadOp(std::move(core), operation, std::move(user_path)),
          directory_(std::move(directory)),
          leases_(join_path(directory_, kSemaphoreLeases)) {}

    LockLayout layout;

private:
    void begin() override {
        layout = {};
        core().children(directory_,
                        executed("list", directory_,
                                 [this](Rc rc, const std::vector<std::string>& names, const NodeStat& stat, Instant) {
                                     if (rc != Rc::ok || !may_be_semaphore(names, stat)) return done();
                                     has_locks_ = contains(names, kSemaphoreQueue);
                                     contains(names, kSemaphoreLeases) ? read_number() : read_kazoo_number();
                                 }));
    }

    void read_number() {
        core().get(leases_, executed("get", leases_, [this](Rc rc, const std::string& data, const NodeStat&, Instant) {
                       if (rc != Rc::ok) return done();  // has just been removed
                       layout.limit = read_limit(data).value_or(0);
                       list_leases();
                   }));
    }

    /// Directories of these two names prove nothing: a lock may have such a name.
    void list_leases() {
        core().children(
            leases_,
            executed("list", leases_, [this](Rc rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
                layout.evident = layout.limit != 0 || std::ranges::any_of(names, is_lease_name);
                const bool idle = rc == Rc::ok && names.empty() && has_locks_;
                if (layout.evident || idle) layout.kind = LockLayout::Kind::semaphore;
                done();
            }));
    }

    void read_kazoo_number() {
        core().get(directory_,
                   executed("get", directory_, [this](Rc rc, const std::string& data, const NodeStat&, Instant) {
                       if (rc != Rc::ok) return done();
                       layout.limit = read_kazoo_limit(data);
                       layout.limit != 0 ? found_kazoos() : look_for_kazoos_queue();
                   }));
    }

    /// If the path existed before, kazoo writes no number.
    void look_for_kazoos_queue() {
        const auto queue = directory_ + kKazooQueue;
        core().exists(queue, executed("exists", queue, [this](Rc rc, const NodeStat&, Instant) {
                          rc == Rc::ok ? found_kazoos() : done();
                      }));
    }

    void found_kazoos() {
        layout.kind = LockLayout::Kind::kazoo_semaphore;
        layout.evident = true;
        done();
    }

    const std::string directory_;
    const std::string leases_;
    bool has_locks_ = false;
};

}  // namespace

bool is_lease_name(std::string_view name) {
    auto before_number = name;
    while (!before_number.empty() && is_digit(before_number.back())) before_number.remove_suffix(1);
    return before_number.size() < name.size() && ends_with_word(before_number, "lease-");
}

bool may_be_semaphore(std::span<const std::string> children, const NodeStat& stat) {
    if (has_lock_nodes(children) || is_ephemeral(stat)) return false;
    if (contains(children, kSemaphoreLeases)) return true;
    constexpr std::int32_t most_digits = 10;
    const bool may_hold_number = stat.data_length > 0 && stat.data_length <= most_digits;
    return children.empty() ? may_hold_number : all_kazoo_leases(children);
}

std::string queue_directory(const LockLayout& layout, const std::string& path) {
    switch (layout.kind) {
        case LockLayout::Kind::queue: return path;
        case LockLayout::Kind::semaphore: return join_path(path, kSemaphoreQueue);
        case LockLayout::Kind::kazoo_semaphore: return path + kKazooQueue;
    }
    return path;
}

std::string lease_directory(const LockLayout& layout, const std::string& path) {
    return layout.kind == LockLayout::Kind::semaphore ? join_path(path, kSemaphoreLeases) : path;
}

Steps<LockLayout> read_layout(const std::shared_ptr<SessionCore>& core, const char* operation,
                              const std::string& user_path, const std::string& directory) {
    return found_by(std::make_shared<LayoutReader>(core, operation, user_path, directory), &LayoutReader::layout);
}

}  // namespace zkrecipes::internal
