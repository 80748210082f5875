#include "chaos/raw_handle.hpp"

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace zkrecipes::chaos {

RawHandle::RawHandle(const std::string& hosts, std::chrono::milliseconds timeout, std::function<void(int)> on_state)
    : on_state_(std::move(on_state)) {
    zoo_set_debug_level(static_cast<ZooLogLevel>(0));
    zoo_deterministic_conn_order(1);
    handle_ = zookeeper_init(hosts.c_str(), &RawHandle::watch, static_cast<int>(timeout.count()), nullptr, this, 0);
    if (handle_ == nullptr) throw std::system_error(errno, std::generic_category(), "zookeeper_init " + hosts);
}

RawHandle::~RawHandle() { zookeeper_close(handle_); }

void RawHandle::watch(zhandle_t*, int type, int state, const char*, void* context) {
    if (type != ZOO_SESSION_EVENT) return;
    auto& self = *static_cast<RawHandle*>(context);
    {
        const std::lock_guard lock(self.mutex_);
        self.state_ = state;
        self.changed_.notify_all();
    }
    if (self.on_state_) self.on_state_(state);
}

bool RawHandle::wait_connected(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [this] { return connected(); });
}

void RawHandle::make_path(const std::string& path) {
    for (auto end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        int rc = ZCONNECTIONLOSS;
        for (int attempt = 0; attempt < 20 && (rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT); ++attempt) {
            wait_connected(std::chrono::seconds(3));
            rc = zoo_create(handle_, part.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, nullptr, 0);
        }
        if (rc != ZOK && rc != ZNODEEXISTS) throw std::runtime_error("create " + part + ": " + zerror(rc));
        if (end == std::string::npos) return;
    }
}

}  // namespace zkrecipes::chaos
