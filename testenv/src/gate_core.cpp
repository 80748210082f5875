#include "gate_core.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gate_connection.hpp"

namespace zkrecipes::testenv::internal {

void FaultState::mark_reached() {
    const std::lock_guard lock(mutex);
    reached = true;
    changed.notify_all();
}

GateCore::GateCore(std::shared_ptr<Loop> l, const Endpoint& t, const GateOptions& options)
    : loop(std::move(l)), claim(options.address), target(t), raw(options.raw) {
    endpoint = {claim.address(), options.port == 0 ? target.port : options.port};
    port_is_final_ = options.port != 0;
}

GateCore::GateCore(std::shared_ptr<Loop> l, const Endpoint& t, const Endpoint& at)
    : loop(std::move(l)), endpoint(at), target(t), raw(true), record_limit(0), port_is_final_(true) {}

GateCore::~GateCore() = default;

void GateCore::open() {
    const std::lock_guard lock(loop->mutex());
    start_accepting();
    loop->add(this);
}

void GateCore::close() {
    if (owner_ != ::getpid()) {
        return;  // a forked child: the sockets and the epoll set belong to its parent
    }
    const std::lock_guard lock(loop->mutex());
    loop->remove(this);
    stop_accepting();
    connections.clear();
}

void GateCore::start_accepting() {
    if (listener_) {
        return;
    }
    listener_ = try_listen(endpoint);
    // Another process (a system-wide ZooKeeper) uses the port on all addresses: take another port, since no client
    // knows this one yet.
    for (int tries = 0; !listener_ && !port_is_final_ && tries < 30; ++tries) {
        endpoint.port = static_cast<std::uint16_t>(endpoint.port + 1'000);
        listener_ = try_listen(endpoint);
    }
    if (!listener_) {
        throw Error("the gate cannot listen on " + endpoint.str());
    }
    port_is_final_ = true;
    watch_listener();
}

void GateCore::watch_listener() {
    if (listener_ && !listener_watched_ && newcomers_wait_ == 0) {
        listener_token_ = loop->watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { on_accept(); });
        listener_watched_ = true;
    }
}

void GateCore::unwatch_listener() {
    if (std::exchange(listener_watched_, false)) {
        loop->unwatch(listener_token_, listener_.get());
    }
}

void GateCore::stop_accepting() {
    unwatch_listener();
    listener_.reset();
}

void GateCore::let_newcomers_wait() {
    ++newcomers_wait_;
    unwatch_listener();
}

void GateCore::admit_newcomers() {
    --newcomers_wait_;
    watch_listener();
    loop->wake();
}

void GateCore::on_accept() {
    for (;;) {
        UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (!client) {
            return;
        }
        const int on = 1;
        ::setsockopt(client.get(), IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);
        const std::uint64_t id = next_connection_++;
        const auto connection = std::make_shared<GateConnection>(*this, id, std::move(client));
        connections[id] = connection;
        connection->settle();
    }
}

Clock::time_point GateCore::next_due() const {
    auto earliest = Clock::time_point::max();
    if (timers_until_ != Clock::time_point::min()) {
        for (const auto& [id, connection] : connections) {
            earliest = std::min(earliest, connection->next_due());
        }
    }
    return earliest;
}

void GateCore::on_due(Clock::time_point now) {
    settle_all();
    if (now >= timers_until_) {
        timers_until_ = Clock::time_point::min();
    }
}

void GateCore::pass() {
    hole_to_server = hole_to_client = false;
    delay_to_server = delay_to_client = std::chrono::milliseconds(0);
    start_accepting();
    settle_all();
}

void GateCore::for_each(const std::function<void(GateConnection&)>& action) {
    const auto all = connections;  // an action may remove its connection
    for (const auto& [id, connection] : all) {
        action(*connection);
    }
    loop->wake();
}

void GateCore::settle_all() {
    for_each([](GateConnection& connection) { connection.settle(); });
}

void GateCore::forget(std::uint64_t connection) { connections.erase(connection); }

std::shared_ptr<FaultState> GateCore::fault_for(const Record& request) {
    for (auto fault = faults.begin(); fault != faults.end(); ++fault) {
        if ((*fault)->match.fits(request) && --(*fault)->left == 0) {
            auto found = *fault;
            found->request = request;
            faults.erase(fault);
            return found;
        }
    }
    return nullptr;
}

void GateCore::record(Record record) {
    records.push_back(std::move(record));
    while (records.size() > record_limit) {
        records.pop_front();
    }
}

void GateCore::count_request(const Record& request) {
    counts.add(request.opcode);
    session_counts[request.session].add(request.opcode);
}

void GateCore::learn_session(std::int64_t session, const std::string& password) {
    if (passwords.emplace(session, password).second) {
        sessions.push_back(session);
    }
}

}  // namespace zkrecipes::testenv::internal
