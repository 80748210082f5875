#include "chaos/raw_handle.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <future>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace zkrecipes::chaos {

RawHandle::RawHandle(const std::string& hosts, std::chrono::milliseconds timeout, std::function<void(int)> on_state)
    : on_state_(std::move(on_state)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    zoo_set_debug_level(static_cast<ZooLogLevel>(0));
    zoo_deterministic_conn_order(1);
    handle_ = zookeeper_init(hosts.c_str(), &RawHandle::watch, static_cast<int>(timeout.count()), nullptr, this, 0);
    if (handle_ == nullptr) throw std::system_error(errno, std::generic_category(), "zookeeper_init " + hosts);
    driver_ = std::jthread([this](const std::stop_token& stop) { drive(stop); });
}

RawHandle::~RawHandle() {
    driver_.request_stop();
    wake();
    driver_.join();
    zookeeper_close(handle_);
    ::close(wake_);
}

void RawHandle::drive(const std::stop_token& stop) {
    std::array<pollfd, 2> polled{{{wake_, POLLIN, 0}, {-1, 0, 0}}};
    while (!stop.stop_requested()) {
        int wait_ms = 0;
        {
            const std::lock_guard lock(client_);
            int events = 0;
            if ((polled[1].revents & ~POLLOUT) != 0) events |= ZOOKEEPER_READ;
            if ((polled[1].revents & ~POLLIN) != 0) events |= ZOOKEEPER_WRITE;
            for (int rc = events == 0 ? ZNOTHING : ZOK; rc == ZOK; events = ZOOKEEPER_READ) {
                rc = zookeeper_process(handle_, events);
            }
            int socket = -1, interest = 0;
            timeval limit{};
            const bool over = is_unrecoverable(handle_) != ZOK;
            if (!over) zookeeper_interest(handle_, &socket, &interest, &limit);
            wait_ms = over ? -1 : static_cast<int>(limit.tv_sec * 1000 + (limit.tv_usec + 999) / 1000);
            polled[1].fd = socket;
            polled[1].events = static_cast<short>(((interest & ZOOKEEPER_READ) != 0 ? POLLIN : 0) |
                                                  ((interest & ZOOKEEPER_WRITE) != 0 ? POLLOUT : 0));
        }
        ::poll(polled.data(), polled.size(), wait_ms);
        std::uint64_t count = 0;
        if (polled[0].revents != 0) (void)!::read(wake_, &count, sizeof count);
    }
}

void RawHandle::wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_, &one, sizeof one);
}

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

RawHandle::Made RawHandle::create(const std::string& path, int flags) {
    using Promise = std::promise<Made>;
    const auto answer = [](int rc, const char* made, const Stat* stat, const void* data) {
        static_cast<Promise*>(const_cast<void*>(data))
            ->set_value({rc, made == nullptr ? "" : made, stat == nullptr ? 0 : stat->czxid});
    };
    Promise promise;
    const int rc = ask([&](zhandle_t* handle) {
        return zoo_acreate2(handle, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, flags, answer, &promise);
    });
    return rc == ZOK ? promise.get_future().get() : Made{.rc = rc};
}

std::optional<std::vector<std::string>> RawHandle::children(const std::string& path) {
    using Promise = std::promise<std::optional<std::vector<std::string>>>;
    const auto answer = [](int rc, const String_vector* names, const void* data) {
        std::optional<std::vector<std::string>> all;
        if (rc == ZOK) all.emplace(names->data, names->data + names->count);
        static_cast<Promise*>(const_cast<void*>(data))->set_value(std::move(all));
    };
    Promise promise;
    const int rc = ask([&](zhandle_t* handle) { return zoo_aget_children(handle, path.c_str(), 0, answer, &promise); });
    return rc == ZOK ? promise.get_future().get() : std::nullopt;
}

void RawHandle::make_path(const std::string& path) {
    for (auto end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        int rc = ZCONNECTIONLOSS;
        for (int attempt = 0; attempt < 20 && (rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT); ++attempt) {
            wait_connected(std::chrono::seconds(3));
            rc = create(part, 0).rc;
        }
        if (rc != ZOK && rc != ZNODEEXISTS) throw std::runtime_error("create " + part + ": " + zerror(rc));
        if (end == std::string::npos) return;
    }
}

}  // namespace zkrecipes::chaos
