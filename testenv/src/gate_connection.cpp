#include "gate_connection.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace zkrecipes::testenv::internal {

namespace {

constexpr std::size_t most_queued = std::size_t{8} * 1024 * 1024;

}  // namespace

GateConnection::GateConnection(GateCore& gate, std::uint64_t id, UniqueFd client) : gate_(gate), id_(id) {
    client_.fd = std::move(client);
    to_server_.direction = Direction::to_server;
    to_server_.source = &client_;
    to_server_.sink = &server_;
    to_client_.direction = Direction::to_client;
    to_client_.source = &server_;
    to_client_.sink = &client_;
    gate_.record(new_record(Record::Kind::connected, Opcode::connect));
}

GateConnection::~GateConnection() {
    close_socket(client_, false);
    close_socket(server_, false);
}

Record GateConnection::new_record(Record::Kind kind, Opcode opcode) const {
    Record record;
    record.kind = kind;
    record.opcode = opcode;
    record.session = session_;
    record.connection = id_;
    record.time = Clock::now();
    return record;
}

void GateConnection::close_socket(Socket& socket, bool with_reset) {
    if (!socket.fd) {
        return;
    }
    if (socket.token != 0) {
        gate_.loop->unwatch(socket.token, socket.fd.get());
        socket.token = 0;
        socket.interest = 0;
    }
    if (with_reset) {
        const linger at_once{1, 0};
        ::setsockopt(socket.fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    socket.fd.reset();
}

void GateConnection::reset() {
    if (over_) {
        return;
    }
    over_ = true;
    gate_.record(new_record(Record::Kind::disconnected, Opcode::connect));
    close_socket(client_, true);
    close_socket(server_, true);
    gate_.forget(id_);
}

void GateConnection::end_for(Side told) {
    if (over_) {
        return;
    }
    Socket& gone = told == Side::client ? client_ : server_;
    close_socket(gone, true);
    for (Pipe* pipe : {&to_server_, &to_client_}) {
        if (pipe->source == &gone) {
            pipe->end_read = true;
            pipe->end_written = true;
            pipe->queue.clear();
            pipe->queued = 0;
        } else {
            pipe->swallow = true;
        }
    }
    cut_ = true;  // also: no new connection to the server for what the client sends
    settle();
}

// The server must still execute all earlier requests. A close with unread answers in the socket would be a reset, and
// the server would discard what it has not read. So the server gets an orderly end, and the gate reads until the server
// closes, too.
void GateConnection::cut() {
    if (cut_) {
        return;
    }
    cut_ = true;
    gate_.record(new_record(Record::Kind::disconnected, Opcode::connect));
    close_socket(client_, false);
    to_client_.swallow = true;
    to_server_.end_read = true;
    Chunk end;
    end.kind = Chunk::Kind::end;
    push(to_server_, std::move(end));
}

void GateConnection::cut_for(FaultState& fault) {
    // With the mutex locked: a client that sees the end of the connection and then asks must see the fault as reached.
    const std::lock_guard lock(fault.mutex);
    cut();
    fault.reached = true;
    fault.changed.notify_all();
}

void GateConnection::broken(Pipe& pipe) {
    pipe.end_read = true;
    if (pipe.swallow || cut_) {
        pipe.end_written = true;
        // The peer of the other direction has disconnected.
        Pipe& other = &pipe == &to_server_ ? to_client_ : to_server_;
        other.swallow = true;
        other.end_read = other.end_written = true;
        return;
    }
    reset();
}

void GateConnection::connect_to_server() {
    if (server_.fd || cut_ || over_ || gate_.in_hole(Direction::to_server)) {
        return;
    }
    server_.fd = start_connect(gate_.target);
    server_.connecting = true;
    if (!server_.fd) {
        reset();
    }
}

void GateConnection::on_event(Socket& socket, std::uint32_t events) {
    if (over_ || !socket.fd) {
        return;
    }
    if (socket.connecting) {
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(socket.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0) {
            reset();
            return;
        }
        socket.connecting = false;
    }
    socket.write_blocked = false;
    Pipe& pipe = pipe_reading(socket);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
        if (!pipe.end_read && !gate_.in_hole(pipe.direction)) {
            read_from(pipe);
        } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
            socket.broken_in_hole = true;
            if (pipe.end_read) {  // both of its directions have ended: the rest of its data is lost
                (&pipe == &to_server_ ? to_client_ : to_server_).swallow = true;
            }
        }
    }
    settle();
}

void GateConnection::read_from(Pipe& pipe) {
    static thread_local char buffer[64 * 1024];
    const ssize_t got = ::recv(pipe.source->fd.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) {
        if (!pipe.swallow) {
            take_bytes(pipe, std::string_view(buffer, static_cast<std::size_t>(got)));
        }
    } else if (got == 0) {
        pipe.end_read = true;
        Chunk rest;
        rest.bytes = pipe.head + pipe.splitter.take_rest();
        push(pipe, std::move(rest));
        Chunk end;
        end.kind = Chunk::Kind::end;
        push(pipe, std::move(end));
    } else if (errno != EAGAIN && errno != EINTR) {
        broken(pipe);
    }
}

void GateConnection::take_bytes(Pipe& pipe, std::string_view bytes) {
    if (gate_.raw || pipe.raw) {
        take_raw(pipe, bytes);
        return;
    }
    pipe.splitter.feed(bytes);
    while (!cut_ && !pipe.raw) {
        auto frame = pipe.splitter.next();
        if (!frame) {
            break;
        }
        const bool first = !pipe.head_done;
        pipe.head_done = true;
        if (pipe.direction == Direction::to_server) {
            first ? take_first_request(std::move(*frame)) : take_request(std::move(*frame));
        } else {
            first ? take_first_reply(std::move(*frame)) : take_reply(std::move(*frame));
        }
    }
    if (pipe.splitter.broken()) {  // a four-letter word, or another protocol
        to_server_.raw = to_client_.raw = true;
    }
    if (pipe.raw && !cut_) {
        Chunk rest;
        rest.bytes = pipe.splitter.take_rest();
        push(pipe, std::move(rest));
    }
}

void GateConnection::take_raw(Pipe& pipe, std::string_view bytes) {
    Chunk chunk;
    if (gate_.stream_head && pipe.direction == Direction::to_server && !pipe.head_done) {
        pipe.head.append(bytes);
        auto rewritten = gate_.stream_head(pipe.head);
        if (!rewritten) {
            return;
        }
        chunk.bytes = std::move(*rewritten);
        pipe.head.clear();
        pipe.head_done = true;
    } else {
        chunk.bytes = pipe.splitter.take_rest().append(bytes);
    }
    push(pipe, std::move(chunk));
}

void GateConnection::take_first_request(std::string frame) {
    const auto request = wire::parse_connect_request(wire::body(frame));
    if (!request) {
        to_server_.raw = to_client_.raw = true;
        Chunk chunk;
        chunk.bytes = std::move(frame);
        push(to_server_, std::move(chunk));
        return;
    }
    Record record = new_record(Record::Kind::request, Opcode::connect);
    record.session = request->session_id;
    const auto fault = gate_.fault_for(record);
    gate_.count_request(record);
    if (fault && fault->kind == FaultState::Kind::cut_before) {
        record.forwarded = false;
        gate_.record(record);
        cut_for(*fault);
        return;
    }
    gate_.record(record);
    pending_.push_back({0, Opcode::connect, "", fault});
    Chunk chunk;
    chunk.bytes = std::move(frame);
    push(to_server_, std::move(chunk));
}

void GateConnection::take_request(std::string frame) {
    Chunk chunk;
    const auto head = wire::parse_request(wire::body(frame));
    if (head) {
        Record record = new_record(Record::Kind::request, head->opcode);
        record.path = head->path;
        record.parts = head->parts;
        record.flags = head->flags;
        record.xid = head->xid;
        record.bytes = frame.size();
        record.data_bytes = head->data_bytes;
        const auto fault = gate_.fault_for(record);
        gate_.count_request(record);
        record.forwarded = !fault || fault->kind != FaultState::Kind::cut_before;
        gate_.record(record);
        if (!record.forwarded) {
            cut_for(*fault);
            return;
        }
        pending_.push_back({head->xid, head->opcode, head->path, fault});
    }
    chunk.bytes = std::move(frame);
    push(to_server_, std::move(chunk));
}

void GateConnection::take_first_reply(std::string frame) {
    Chunk chunk;
    if (const auto response = wire::parse_connect_response(wire::body(frame))) {
        if (response->timeout_ms > 0) {
            session_ = response->session_id;
            gate_.learn_session(session_, response->password);
        }
        chunk.record = new_record(Record::Kind::reply, Opcode::connect);
        chunk.record->error = response->timeout_ms > 0 ? zk_error::ok : zk_error::session_expired;
        if (!pending_.empty()) {
            chunk.fault = pending_.front().fault;
            pending_.pop_front();
        }
    }
    chunk.bytes = std::move(frame);
    push(to_client_, std::move(chunk));
}

void GateConnection::take_reply(std::string frame) {
    Chunk chunk;
    const auto head = wire::parse_reply(wire::body(frame));
    if (head && head->xid == wire::xid_event) {
        const auto event = wire::parse_event(wire::body(frame)).value_or(wire::Event{});
        chunk.record = new_record(Record::Kind::event, Opcode::notification);
        chunk.record->path = event.path;
        chunk.record->flags = event.type;
        chunk.record->xid = head->xid;
    } else if (head) {
        chunk.record = new_record(Record::Kind::reply, Opcode::notification);
        chunk.record->xid = head->xid;
        chunk.record->zxid = head->zxid;
        chunk.record->error = head->error;
        const auto asked = std::find_if(pending_.begin(), pending_.end(),
                                        [&](const Pending& pending) { return pending.xid == head->xid; });
        if (asked != pending_.end()) {
            chunk.record->opcode = asked->opcode;
            chunk.record->path = asked->path;
            chunk.fault = asked->fault;
            chunk.passes_held = asked->opcode == Opcode::ping;
            pending_.erase(asked);
        }
    }
    chunk.bytes = std::move(frame);
    push(to_client_, std::move(chunk));
}

void GateConnection::push(Pipe& pipe, Chunk chunk) {
    if (chunk.kind == Chunk::Kind::data && chunk.bytes.empty()) return;
    if (chunk.fault && chunk.fault->kind == FaultState::Kind::cut_after) {
        chunk.kind = Chunk::Kind::cut;
        chunk.record->forwarded = false;
    } else if (chunk.fault) {
        chunk.fault->held = FaultState::Held::yes;
        chunk.fault->mark_reached();
    }
    const auto delay = gate_.delay_of(pipe.direction);
    chunk.due = Clock::now() + delay;
    if (delay.count() > 0) gate_.expect_timer(chunk.due);
    pipe.queued += chunk.bytes.size();
    pipe.queue.push_back(std::move(chunk));
}

// Writes everything that is due, in order. After a held reply only answers to pings pass.
void GateConnection::pump(Pipe& pipe) {
    if (pipe.swallow) {
        pipe.end_written = pipe.end_written || pipe.end_read;
        pipe.queue.clear();
        pipe.queued = 0;
        return;
    }
    if (!pipe.sink->fd || pipe.sink->connecting || gate_.in_hole(pipe.direction)) return;
    const auto now = Clock::now();
    bool held = false;
    // A partly written chunk goes first: it may be an answer to a ping that has overtaken a held reply.
    auto next =
        std::find_if(pipe.queue.begin(), pipe.queue.end(), [](const Chunk& chunk) { return chunk.written > 0; });
    if (next != pipe.queue.end()) {
        if (!write_chunk(pipe, *next)) {
            return;
        }
        pipe.queue.erase(next);
    }
    for (next = pipe.queue.begin(); next != pipe.queue.end() && next->due <= now;) {
        const auto fate = next->fault ? next->fault->held : FaultState::Held::no;
        held = held || fate == FaultState::Held::yes;
        if (held && !next->passes_held) {
            ++next;
            continue;
        }
        if (next->kind == Chunk::Kind::cut || fate == FaultState::Held::dropped) {
            const auto fault = next->fault;
            next->record->forwarded = false;
            gate_.record(*next->record);
            cut_for(*fault);
            pump(to_client_);
            return;
        }
        if (next->kind == Chunk::Kind::end) {
            ::shutdown(pipe.sink->fd.get(), SHUT_WR);
            pipe.end_written = true;
        } else if (!write_chunk(pipe, *next)) {
            return;
        }
        next = pipe.queue.erase(next);
    }
}

bool GateConnection::write_chunk(Pipe& pipe, Chunk& chunk) {
    while (chunk.written < chunk.bytes.size()) {
        const ssize_t written = ::send(pipe.sink->fd.get(), chunk.bytes.data() + chunk.written,
                                       chunk.bytes.size() - chunk.written, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (written < 0) {
            if (errno == EINTR) {
                continue;
            }
            pipe.sink->write_blocked = errno == EAGAIN;
            if (errno != EAGAIN) {
                // The receiver has disconnected. The other direction must learn of it, unless it is in a black hole.
                pipe.swallow = true;
                pump(pipe);
            }
            return false;
        }
        chunk.written += static_cast<std::size_t>(written);
    }
    pipe.queued -= chunk.bytes.size();
    if (chunk.record) {
        chunk.record->time = Clock::now();
        gate_.record(*chunk.record);
    }
    return true;
}

void GateConnection::settle() {
    const auto self = shared_from_this();
    connect_to_server();
    if (over_) {
        return;
    }
    pump(to_client_);
    pump(to_server_);
    const bool both_gone = cut_ && !client_.fd && !server_.fd;
    if (both_gone || (to_server_.end_written && to_client_.end_written)) {
        over_ = true;
        if (!cut_) {
            gate_.record(new_record(Record::Kind::disconnected, Opcode::connect));
        }
        close_socket(client_, false);
        close_socket(server_, false);
        gate_.forget(id_);
        return;
    }
    update_interest(client_, to_server_);
    update_interest(server_, to_client_);
}

// Removes a descriptor without interest from the loop: epoll always reports the end of a connection, which would keep
// the thread busy while a black hole forbids to read it.
void GateConnection::update_interest(Socket& socket, const Pipe& reads) {
    if (!socket.fd) {
        return;
    }
    std::uint32_t wanted = 0;
    if (socket.connecting) {
        wanted = EPOLLOUT;
    } else {
        const bool reading = !reads.end_read && !gate_.in_hole(reads.direction) && reads.queued < most_queued;
        if (reading) {
            socket.broken_in_hole = false;
            wanted |= EPOLLIN;
        }
        if (socket.write_blocked) {
            wanted |= EPOLLOUT;
        }
        if (socket.broken_in_hole) {
            wanted = 0;
        }
    }
    if (wanted == socket.interest) {
        return;
    }
    socket.interest = wanted;
    if (wanted == 0) {
        gate_.loop->unwatch(socket.token, socket.fd.get());
        socket.token = 0;
    } else if (socket.token == 0) {
        socket.token =
            gate_.loop->watch(socket.fd.get(), wanted, [weak = weak_from_this(), &socket](std::uint32_t events) {
                if (const auto connection = weak.lock()) {
                    connection->on_event(socket, events);
                }
            });
    } else {
        gate_.loop->change(socket.token, socket.fd.get(), wanted);
    }
}

Clock::time_point GateConnection::next_due() const {
    auto earliest = Clock::time_point::max();
    for (const Pipe* pipe : {&to_server_, &to_client_}) {
        if (pipe->swallow || !pipe->sink->fd || pipe->sink->connecting || pipe->sink->write_blocked ||
            gate_.in_hole(pipe->direction)) {
            continue;
        }
        bool held = false;
        for (const auto& chunk : pipe->queue) {
            held = held || (chunk.fault && chunk.fault->held == FaultState::Held::yes);
            if (!held || chunk.passes_held) {
                earliest = std::min(earliest, chunk.due);
                break;
            }
        }
    }
    return earliest;
}

}  // namespace zkrecipes::testenv::internal
