#include "bench/floor.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "bench/floors/names.hpp"
#include "bench/floors/program.hpp"

namespace zkrecipes::bench {
namespace {

/// What one completion of the C client calls.
struct Answer {
    int rc = ZOK;
    const char* text = nullptr;
    int length = 0;
    const Stat* stat = nullptr;
    const String_vector* names = nullptr;
};
using OnAnswer = std::function<void(const Answer&)>;

const void* context_of(OnAnswer done) { return new OnAnswer(std::move(done)); }
void tell(const void* context, const Answer& answer) {
    const std::unique_ptr<const OnAnswer> done(static_cast<const OnAnswer*>(context));
    (*done)(answer);
}
void on_void(int rc, const void* context) { tell(context, {.rc = rc}); }
void on_stat(int rc, const Stat* stat, const void* context) { tell(context, {.rc = rc, .stat = stat}); }
void on_created(int rc, const char* path, const Stat* stat, const void* context) {
    tell(context, {.rc = rc, .text = path, .stat = stat});
}
void on_data(int rc, const char* data, int length, const Stat* stat, const void* context) {
    tell(context, {.rc = rc, .text = data, .length = length, .stat = stat});
}
void on_names(int rc, const String_vector* names, const void* context) { tell(context, {.rc = rc, .names = names}); }

}  // namespace

// ---- one session --------------------------------------------------------------------------------------------------

FloorClient::FloorClient(const std::string& hosts)
    : driven_(loop_.open(hosts)), thread_([this] {
          while (!ended_) loop_.turn();
      }) {}

FloorClient::~FloorClient() {
    ended_ = true;
    loop_.wake();
    thread_.join();
}

void FloorClient::make_path(const std::string& path) {
    for (std::size_t slash = 0; slash != std::string::npos;) {
        slash = path.find('/', slash + 1);
        const auto done = [this](const Answer& answer) {
            if (answer.rc != ZNODEEXISTS) check(answer.rc, "create of a directory");
            answered();
        };
        send(1, [&] {
            check(zoo_acreate2(handle(), path.substr(0, slash).c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT,
                               on_created, context_of(done)),
                  "create of a directory");
        });
        wait();
    }
}

int FloorClient::children(const std::string& path) {
    int children = 0;
    send(1, [&] { send_exists(path, children); });
    wait();
    return children;
}

std::string FloorClient::data_of(const std::string& node) {
    std::string data;
    const auto done = [this, &data](const Answer& answer) {
        check(answer.rc, "get");
        if (answer.length > 0) data.assign(answer.text, static_cast<std::size_t>(answer.length));
        answered();
    };
    send(1, [&] { check(zoo_aget(handle(), node.c_str(), 0, on_data, context_of(done)), "get"); });
    wait();
    return data;
}

std::string FloorClient::new_name(const char* kind) {
    static std::atomic<unsigned long long> names{0};
    char name[64];
    std::snprintf(name, sizeof name, "/_c_00000000-0000-4000-8000-%012llx-%s-", ++names, kind);
    return name;
}

void FloorClient::send_create(const std::string& directory, const char* kind, const std::string& data,
                              std::string& created) {
    const auto done = [this, &created](const Answer& answer) {
        check(answer.rc, "create");
        created = answer.text;
        answered();
    };
    check(zoo_acreate2(handle(), (directory + new_name(kind)).c_str(), data.data(), static_cast<int>(data.size()),
                       &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL, on_created, context_of(done)),
          "create");
}

void FloorClient::send_exists(const std::string& path, int& children) {
    const auto done = [this, &children](const Answer& answer) {
        check(answer.rc, "exists");
        children = answer.stat->numChildren;
        answered();
    };
    check(zoo_aexists(handle(), path.c_str(), 0, on_stat, context_of(done)), "exists");
}

void FloorClient::send_delete(const std::string& node, bool answered) {
    const auto done = [this, answered](const Answer& answer) {
        // Nobody waited for it, and the end of the session deletes the node, too.
        if (!answered && answer.rc == ZCLOSING) return;
        check(answer.rc, "delete");
        if (answered) this->answered();
    };
    check(zoo_adelete(handle(), node.c_str(), -1, on_void, context_of(done)), "delete");
}

// ---- an exclusive lock --------------------------------------------------------------------------------------------

FloorLock::FloorLock(const std::string& hosts, std::string directory, std::string data)
    : FloorClient(hosts), directory_(std::move(directory)), data_(std::move(data)) {}

void FloorLock::acquire_free() {
    send(2, [&] {
        send_create(directory_, "lock", data_, node_);
        send_exists(directory_, children_);
    });
    wait();
    if (children_ != 1) fail("acquire of a lock that is not free");
}

void FloorLock::acquire() {
    const auto listed = [this](const Answer& answer) {
        check(answer.rc, "list");
        listed_.assign(answer.names->data, answer.names->data + answer.names->count);
        answered();
    };
    send(2, [&] {
        send_create(directory_, "lock", data_, node_);
        check(zoo_aget_children(handle(), directory_.c_str(), 0, on_names, context_of(listed)), "list");
    });
    wait();
    const std::string* predecessor = nullptr;
    for (const std::string& name : listed_) {
        if (number_of(name) >= number_of(node_)) continue;
        if (predecessor == nullptr || number_of(*predecessor) < number_of(name)) predecessor = &name;
    }
    if (predecessor != nullptr) wait_for_end_of(directory_ + "/" + *predecessor);
}

void FloorLock::wait_for_end_of(const std::string& predecessor) {
    turn_.arm(1);
    const auto event = [](zhandle_t*, int type, int, const char*, void* self) {
        if (type == ZOO_DELETED_EVENT) static_cast<FloorLock*>(self)->turn_.done();
    };
    const auto watched = [this](const Answer& answer) {
        if (answer.rc == ZNONODE) {
            turn_.done();
        } else {
            check(answer.rc, "get");
        }
    };
    send(0, [&] { check(zoo_awget(handle(), predecessor.c_str(), event, this, on_data, context_of(watched)), "get"); });
    turn_.wait();
}

void FloorLock::release_and_wait() {
    send(1, [&] { send_delete(node_, true); });
    wait();
}

// ---- several locks ------------------------------------------------------------------------------------------------

FloorSet::FloorSet(const std::string& hosts, std::vector<std::string> directories, std::string data)
    : FloorClient(hosts),
      directories_(std::move(directories)),
      data_(std::move(data)),
      nodes_(directories_.size(), std::string(256, '\0')),
      children_(directories_.size()),
      results_(directories_.size()) {}

void FloorSet::send_multi(const std::vector<zoo_op_t>& operations) {
    const auto done = [this](const Answer& answer) {
        check(answer.rc, "multi");
        answered();
    };
    check(zoo_amulti(handle(), static_cast<int>(operations.size()), operations.data(), results_.data(), on_void,
                     context_of(done)),
          "multi");
}

void FloorSet::acquire() {
    std::vector<zoo_op_t> creates(directories_.size());
    std::vector<std::string> names;
    for (const std::string& directory : directories_) names.push_back(directory + new_name("lock"));
    for (std::size_t i = 0; i < creates.size(); ++i) {
        zoo_create_op_init(&creates[i], names[i].c_str(), data_.data(), static_cast<int>(data_.size()),
                           &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL, nodes_[i].data(),
                           static_cast<int>(nodes_[i].size()));
    }
    send(static_cast<int>(creates.size()) + 1, [&] {
        send_multi(creates);
        for (std::size_t i = 0; i < directories_.size(); ++i) send_exists(directories_[i], children_[i]);
    });
    wait();
    if (std::any_of(children_.begin(), children_.end(), [](int children) { return children != 1; })) {
        fail("acquire of a set that is not free");
    }
}

void FloorSet::release_and_wait() {
    std::vector<zoo_op_t> deletes(nodes_.size());
    for (std::size_t i = 0; i < deletes.size(); ++i) zoo_delete_op_init(&deletes[i], nodes_[i].c_str(), -1);
    send(1, [&] { send_multi(deletes); });
    wait();
}

// ---- a semaphore of one lease -------------------------------------------------------------------------------------

FloorSemaphoreMutex::FloorSemaphoreMutex(const std::string& hosts, std::string path, std::string data)
    : FloorClient(hosts), path_(std::move(path)), data_(std::move(data)) {}

void FloorSemaphoreMutex::acquire() {
    send(3, [&] {
        send_create(path_ + "/leases", "lease", data_, node_);
        send_exists(path_ + "/locks", waiters_);
        send_exists(path_ + "/leases", leases_);
    });
    wait();
    if (waiters_ != 0 || leases_ != 1) fail("acquire of a semaphore that is not free");
}

void FloorSemaphoreMutex::release_and_wait() {
    send(1, [&] { send_delete(node_, true); });
    wait();
}

// ---- a crowd of one session ---------------------------------------------------------------------------------------

FloorCrowd::FloorCrowd(const std::string& hosts, std::string directory, std::string data)
    : FloorClient(hosts), directory_(std::move(directory)), data_(std::move(data)) {}

void FloorCrowd::drain(int waiters) {
    to_grant_ = waiters;
    to_create_ = std::max(waiters - 2, 0);
    send(std::min(waiters, 2), [&] {
        send_create(directory_, "lock", data_, holder_);
        if (waiters > 1) send_create(directory_, "lock", data_, next_);
    });
    wait();
    drained_.arm(1);
    send(0, [&] { granted(); });
    drained_.wait();
}

// The answers come in the order of the requests: when the delete is answered, the create is, too.
void FloorCrowd::granted() {
    if (to_create_-- > 0) send_create(directory_, "lock", data_, after_next_);
    send_exists(directory_, queued_);
    const auto gone = [this](const Answer& answer) {
        check(answer.rc, "delete");
        holder_ = std::exchange(next_, std::move(after_next_));
        if (--to_grant_ > 0) {
            granted();
        } else {
            drained_.done();
        }
    };
    check(zoo_adelete(handle(), holder_.c_str(), -1, on_void, context_of(gone)), "delete");
}

}  // namespace zkrecipes::bench
