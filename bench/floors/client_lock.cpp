#include "bench/floors/client_lock.hpp"

#include <string_view>
#include <utility>

#include "bench/floors/names.hpp"
#include "bench/floors/program.hpp"

namespace zkrecipes::bench {
namespace {

ClientLock& lock_of(const void* self) { return *static_cast<ClientLock*>(const_cast<void*>(self)); }

}  // namespace

void check(int rc, const char* what) {
    if (rc != ZOK) fail(std::string(what) + ": " + zerror(rc));
}

ClientSession::ClientSession(const std::string& hosts, std::function<void()> connected)
    : connected_(std::move(connected)) {
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    handle_ = zookeeper_init(hosts.c_str(), on_event, kSessionMilliseconds, nullptr, this, 0);
    if (handle_ == nullptr) fail("zookeeper_init failed");
    // Otherwise the C client resolves the hosts anew with each request.
    zoo_set_servers_resolution_delay(handle_, -1);
}

void ClientSession::on_event(zhandle_t*, int type, int state, const char*, void* self) {
    if (type != ZOO_SESSION_EVENT) return;
    if (state != ZOO_CONNECTED_STATE) fail("the connection broke");
    static_cast<ClientSession*>(self)->connected_();
}

ClientLock::ClientLock(zhandle_t* session, std::string directory, Callback granted, Callback released)
    : session_(session),
      directory_(std::move(directory)),
      granted_(std::move(granted)),
      released_(std::move(released)) {
    const auto made = [](int rc, const char*, const void*) {
        if (rc != ZNODEEXISTS) check(rc, "create of a directory");
    };
    check(zoo_acreate(session_, directory_.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, made, nullptr), "create");
}

void ClientLock::acquire() {
    const std::string name = directory_ + std::string(kNodeName);
    check(zoo_acreate(session_, name.c_str(), kNodeData.data(), static_cast<int>(kNodeData.size()),
                      &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, on_created, this),
          "create");
    check(zoo_aget_children(session_, directory_.c_str(), 0, on_listed, this), "list");
}

void ClientLock::on_created(int rc, const char* node, const void* self) {
    check(rc, "create");
    lock_of(self).node_ = node;
}

void ClientLock::on_listed(int rc, const String_vector* names, const void* self) {
    check(rc, "list");
    ClientLock& lock = lock_of(self);
    const std::string_view own = number_of(lock.node_);
    const char* predecessor = nullptr;
    for (int i = 0; i < names->count; ++i) {
        const char* const name = names->data[i];
        if (number_of(name) >= own) continue;
        if (predecessor == nullptr || number_of(predecessor) < number_of(name)) predecessor = name;
    }
    if (predecessor == nullptr) {
        lock.granted_();
    } else {
        lock.watch(lock.directory_ + "/" + predecessor);
    }
}

void ClientLock::watch(const std::string& predecessor) {
    const auto event = [](zhandle_t*, int type, int, const char*, void* self) {
        if (type == ZOO_DELETED_EVENT) lock_of(self).granted_();
    };
    const auto watched = [](int rc, const char*, int, const Stat*, const void* self) {
        if (rc == ZNONODE) {
            lock_of(self).granted_();
        } else {
            check(rc, "get");
        }
    };
    check(zoo_awget(session_, predecessor.c_str(), event, this, watched, this), "get");
}

void ClientLock::release() { check(zoo_adelete(session_, node_.c_str(), -1, on_deleted, this), "delete"); }

void ClientLock::on_deleted(int rc, const void* self) {
    check(rc, "delete");
    lock_of(self).released_();
}

}  // namespace zkrecipes::bench
