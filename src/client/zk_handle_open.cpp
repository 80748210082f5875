// How a handle begins: host names, and the thread that drives the C client.
#include <spdlog/spdlog.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <zkrecipes/error.hpp>

#include "base/default_logger.hpp"
#include "base/session_timeout.hpp"
#include "client/resolver.hpp"
#include "client/zk_handle.hpp"

namespace zkrecipes::internal {
namespace {

/// How often names are looked up while no server answers.
constexpr auto kLookupInterval = std::chrono::seconds(3);

void watcher(zhandle_t* zh, int type, int state, const char* path, void* context) {
    auto* const handle = static_cast<ZkHandle*>(context);
    if (type == ZOO_SESSION_EVENT) {
        handle->on_session_event(zh, state);
    } else {
        handle->on_node_event(type, path);
    }
}

/// The session has checked it, and says what was wrong; what would overflow inside the C client comes no further.
int bounded_timeout(std::chrono::milliseconds timeout) {
    return static_cast<int>(
        std::clamp<std::chrono::milliseconds>(timeout, kShortestSessionTimeout, kLongestSessionTimeout).count());
}

bool is_shortage(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN; }

std::string why_no_handle(int error, const std::vector<std::string>& addresses) {
    if (error == EAFNOSUPPORT) {
        std::string text;
        for (const std::string& address : addresses) text.append(text.empty() ? "" : ", ").append(address);
        return text +
               ": the ZooKeeper C client connects to no IPv6 address if this machine has an IPv4 address, but no IPv6 "
               "address besides ::1; use IPv4 addresses of the servers, or TLS";
    }
    std::string text = "the ZooKeeper C client cannot make a handle (" + std::generic_category().message(error) + ")";
    if (error == EMFILE) text += "; look at the limit of open files (ulimit -n)";
    if (error == ENFILE) text += "; the machine has too many open files (fs.file-max)";
    if (error == EAGAIN) text += "; look at the limit of processes (ulimit -u)";
    return text;
}

class ZkClientFactory final : public ClientFactory {
public:
    explicit ZkClientFactory(std::shared_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
    std::shared_ptr<Client> open(const ClientOptions& options, std::shared_ptr<ClientEvents> events) override {
        return ZkHandle::open(runtime_, options, std::move(events));
    }

private:
    const std::shared_ptr<Runtime> runtime_;
};

}  // namespace

std::shared_ptr<ClientFactory> make_zk_client_factory(std::shared_ptr<Runtime> runtime) {
    return std::make_shared<ZkClientFactory>(std::move(runtime));
}

ZkHandle::ZkHandle(std::shared_ptr<Runtime> runtime, const ClientOptions& options, std::shared_ptr<ClientEvents> events)
    : runtime_(std::move(runtime)),
      log_lines_(ClientLog::open(options.logger, runtime_)),
      logger_(options.logger ? options.logger : default_logger()),
      timeout_ms_(bounded_timeout(options.timeout)),
      tls_(options.tls),
      trust_(options.tls ? std::make_unique<TlsTrust>(*options.tls) : nullptr),
      sasl_(options.sasl ? make_sasl_answers(*options.sasl) : nullptr),
      events_(std::move(events)),
      servers_(parse_servers(options.hosts)) {}

std::shared_ptr<Client> ZkHandle::open(std::shared_ptr<Runtime> runtime, const ClientOptions& options,
                                       std::shared_ptr<ClientEvents> events) {
    check_client_for(options);
    if (options.tls) {
        if (const std::string problem = why_unusable(*options.tls); !problem.empty()) {
            throw Error(Errc::bad_option, "session", {}, "SessionOptions::tls::" + problem);
        }
    }
    auto handle = std::make_shared<ZkHandle>(std::move(runtime), options, std::move(events));
    if (needs_lookup(handle->servers_)) {
        // zookeeper_init would look the names up here and now, and fail for ever when they are not known yet.
        handle->runtime_->post(Lane::blocking, [handle] { handle->start_when_resolved(); });
    } else {
        std::string problem;
        const std::vector<std::string> addresses = resolve_servers(handle->servers_, problem);
        if (addresses.empty()) {
            throw Error(Errc::bad_connect_string, "connect", {},
                        "this machine can use none of the servers' addresses: " + problem);
        }
        handle->log_left_out(problem);
        const int error = handle->start(addresses);
        if (is_shortage(error)) throw Error(Errc::out_of_resources, "connect", {}, why_no_handle(error, addresses));
        if (error != 0) handle->runtime_->post(Lane::blocking, [handle] { handle->start_when_resolved(); });
    }
    Client* const client = handle.get();
    return {client, [handle = std::move(handle)](Client*) { handle->abandon(); }};
}

/// Answers an errno, 0 for success. Called before the handle is in use, or on the blocking lane.
int ZkHandle::start(const std::vector<std::string>& addresses) {
    const std::vector<std::string> usable = usable_of(addresses);
    if (usable.empty()) return EAFNOSUPPORT;
    {
        const std::lock_guard lock(mutex_);
        addresses_ = usable;
    }
    // Lines below this level, which is the whole process's, are put together in a buffer that all handles share. What
    // they say our own lines say, too. Once: a level that is set afterwards stays, and so does the defect.
    static const bool quiet = (zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR), true);
    static_cast<void>(quiet);
    std::string hosts;
    try {
        hosts = tls_ ? joined(for_c_client({begin_relay(usable)})) : list_of(usable);
    } catch (const std::system_error& error) {
        return error.code().value();
    }
    zhandle_t* const zh = init_handle(
        {hosts, &watcher, timeout_ms_, this, ZOO_NO_LOG_CLIENTENV, log_lines_->function()}, tls_, sasl_.get());
    if (zh == nullptr) {
        const int error = errno != 0 ? errno : EINVAL;
        const std::lock_guard lock(mutex_);
        relay_ = nullptr;
        return error;
    }
    // A safety rule: otherwise the servers' names are looked up before each ping, and while the name service is down
    // there is no ping at all.
    zoo_set_servers_resolution_delay(zh, -1);
    const std::lock_guard client(client_mutex_);
    zh_ = zh;
    const std::lock_guard lock(mutex_);
    try {
        auto drive = [weak = weak_from_this()](short ready) {
            const auto self = weak.lock();
            return self ? self->drive(ready) : ZkDriver::Wait();
        };
        // TLS waits in the handshake, and SASL may wait for other servers.
        driver_ = trust_  ? ZkDriver::on_own_thread(trust_->thread_name(), std::move(drive))
                  : sasl_ ? ZkDriver::on_own_thread("zkr-client", std::move(drive))
                          : ZkDriver::on_the_loop(std::move(drive));
    } catch (const std::system_error& error) {
        zookeeper_close(std::exchange(zh_, nullptr));
        return error.code().value();
    }
    started_ = true;
    return 0;
}

/// The relay connects by itself, and can use all addresses.
std::vector<std::string> ZkHandle::usable_of(const std::vector<std::string>& addresses) const {
    return tls_ ? addresses : for_c_client(addresses);
}

std::string ZkHandle::list_of(const std::vector<std::string>& addresses) {
    const auto list = in_odd_number(addresses, listed_, runtime_->random());
    listed_ = list.size();
    return joined(list);
}

void ZkHandle::start_when_resolved() {
    std::vector<HostPort> servers;
    {
        const std::lock_guard lock(mutex_);
        if (life_ != Life::open || started_) return;
        servers = servers_;
        servers_changed_ = false;
    }
    std::string problem;
    const std::vector<std::string> addresses = resolve_servers(servers, problem);
    log_left_out(problem);
    if (!addresses.empty()) {
        const int error = start(addresses);
        if (error == 0) return;
        const std::string problem_text = why_no_handle(error, addresses);
        logger_->error("{}", problem_text);
        tell([&](ClientEvents& events) { events.on_problem(problem_text); });
    }
    look_up_again_later();
}

void ZkHandle::log_left_out(const std::string& problem) {
    if (!problem.empty()) logger_->warn("ZooKeeper servers that cannot be looked up: {}", problem);
}

void ZkHandle::look_up_again_later() {
    const std::lock_guard lock(mutex_);
    if (life_ != Life::open || lookup_timer_ != 0 || status_.state != ClientState::connecting) return;
    lookup_timer_ = runtime_->at(runtime_->now() + kLookupInterval, [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (!self) return;
        const std::lock_guard timer_lock(self->mutex_);
        self->lookup_timer_ = 0;
        self->runtime_->post(Lane::blocking, [self] { self->apply_servers(); });
    });
}

}  // namespace zkrecipes::internal
