#include "bench/floor.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace zkrecipes::bench {
namespace {

void end_program(const char* what, int rc) {
    std::fprintf(stderr, "bench: %s: %s\n", what, zerror(rc));
    std::exit(1);
}

}  // namespace

FloorLock::FloorLock(const std::string& hosts, std::string directory, std::string data)
    : directory_(std::move(directory)), data_(std::move(data)) {
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    connected_.arm(1);
    handle_ = zookeeper_init(hosts.c_str(), on_session, 30'000, nullptr, this, 0);
    if (handle_ == nullptr) end_program("zookeeper_init", ZSYSTEMERROR);
    // Otherwise the C client resolves the hosts anew with each request, which would flatter the library.
    zoo_set_servers_resolution_delay(handle_, -1);
    connected_.wait();
}

FloorLock::~FloorLock() { zookeeper_close(handle_); }

void FloorLock::on_session(zhandle_t*, int type, int state, const char*, void* self) {
    if (type != ZOO_SESSION_EVENT) return;
    if (state == ZOO_EXPIRED_SESSION_STATE) end_program("session", ZSESSIONEXPIRED);
    if (state == ZOO_CONNECTED_STATE) static_cast<FloorLock*>(self)->connected_.done();
}

void FloorLock::on_predecessor(zhandle_t*, int type, int, const char*, void* self) {
    if (type == ZOO_DELETED_EVENT) static_cast<FloorLock*>(self)->turn_.done();
}

void FloorLock::check(int rc, const char* what) const {
    if (rc != ZOK) end_program(what, rc);
}

void FloorLock::make_directory() {
    for (std::size_t slash = 0; slash != std::string::npos;) {
        slash = directory_.find('/', slash + 1);
        answered_.arm(1);
        check(zoo_acreate(
                  handle_, directory_.substr(0, slash).c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT,
                  [](int rc, const char*, const void* self) {
                      if (rc != ZOK && rc != ZNODEEXISTS) end_program("create directory", rc);
                      const_cast<FloorLock*>(static_cast<const FloorLock*>(self))->answered_.done();
                  },
                  this),
              "create directory");
        answered_.wait();
    }
}

std::string FloorLock::data_of(const std::string& node) {
    answered_.arm(1);
    check(zoo_aget(
              handle_, node.c_str(), 0,
              [](int rc, const char* value, int length, const Stat*, const void* context) {
                  auto* self = const_cast<FloorLock*>(static_cast<const FloorLock*>(context));
                  self->check(rc, "get");
                  self->read_.assign(value == nullptr ? "" : value, length < 0 ? 0 : static_cast<std::size_t>(length));
                  self->answered_.done();
              },
              this),
          "get");
    answered_.wait();
    return read_;
}

int FloorLock::contenders() {
    answered_.arm(1);
    check(zoo_aexists(
              handle_, directory_.c_str(), 0,
              [](int rc, const Stat* stat, const void* context) {
                  auto* self = const_cast<FloorLock*>(static_cast<const FloorLock*>(context));
                  self->check(rc, "exists");
                  self->children_ = stat->numChildren;
                  self->answered_.done();
              },
              this),
          "exists");
    answered_.wait();
    return children_;
}

void FloorLock::create() {
    char name[64];
    std::snprintf(name, sizeof name, "/_c_00000000-0000-4000-8000-%012llx-lock-",
                  static_cast<unsigned long long>(++counter_));
    check(zoo_acreate2(
              handle_, (directory_ + name).c_str(), data_.data(), static_cast<int>(data_.size()), &ZOO_OPEN_ACL_UNSAFE,
              ZOO_EPHEMERAL_SEQUENTIAL,
              [](int rc, const char* path, const Stat* stat, const void* context) {
                  auto* self = const_cast<FloorLock*>(static_cast<const FloorLock*>(context));
                  self->check(rc, "create");
                  self->node_ = path;
                  self->token_ = stat->czxid;
                  self->answered_.done();
              },
              this),
          "create");
}

void FloorLock::acquire() {
    answered_.arm(2);
    create();
    check(zoo_aexists(
              handle_, directory_.c_str(), 0,
              [](int rc, const Stat* stat, const void* context) {
                  auto* self = const_cast<FloorLock*>(static_cast<const FloorLock*>(context));
                  self->check(rc, "exists");
                  self->children_ = stat->numChildren;
                  self->answered_.done();
              },
              this),
          "exists");
    answered_.wait();
    if (children_ != 1) end_program("acquire: somebody else is in the queue", ZNOTEMPTY);
}

void FloorLock::release() {
    check(zoo_adelete(
              handle_, node_.c_str(), -1, [](int, const void*) {}, nullptr),
          "delete");
}

void FloorLock::release_and_wait() {
    answered_.arm(1);
    check(zoo_adelete(
              handle_, node_.c_str(), -1,
              [](int rc, const void* context) {
                  auto* self = const_cast<FloorLock*>(static_cast<const FloorLock*>(context));
                  self->check(rc, "delete");
                  self->answered_.done();
              },
              this),
          "delete");
    answered_.wait();
}

void FloorLock::queue_behind(const std::string& predecessor) {
    turn_.arm(1);
    answered_.arm(2);
    create();
    check(zoo_awget(
              handle_, predecessor.c_str(), on_predecessor, this,
              [](int rc, const char*, int, const Stat*, const void* context) {
                  auto* self = const_cast<FloorLock*>(static_cast<const FloorLock*>(context));
                  self->check(rc, "get");
                  self->answered_.done();
              },
              this),
          "get");
    answered_.wait();
}

void FloorLock::wait_for_turn() {
    turn_.wait();
    zoo_op_t operation;
    zoo_op_result_t result{};
    zoo_check_op_init(&operation, node_.c_str(), -1);
    answered_.arm(1);
    check(zoo_amulti(
              handle_, 1, &operation, &result,
              [](int rc, const void* context) {
                  auto* self = const_cast<FloorLock*>(static_cast<const FloorLock*>(context));
                  self->check(rc, "check");
                  self->answered_.done();
              },
              this),
          "check");
    answered_.wait();
}

}  // namespace zkrecipes::bench
