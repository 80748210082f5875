#include "wire.hpp"

#include <algorithm>

namespace zkrecipes::testenv {

std::string to_string(Opcode opcode) {
    switch (opcode) {
        case Opcode::connect: return "connect";
        case Opcode::close_session: return "close_session";
        case Opcode::notification: return "notification";
        case Opcode::create: return "create";
        case Opcode::remove: return "remove";
        case Opcode::exists: return "exists";
        case Opcode::get_data: return "get_data";
        case Opcode::set_data: return "set_data";
        case Opcode::get_acl: return "get_acl";
        case Opcode::set_acl: return "set_acl";
        case Opcode::get_children: return "get_children";
        case Opcode::sync: return "sync";
        case Opcode::ping: return "ping";
        case Opcode::get_children2: return "get_children2";
        case Opcode::check: return "check";
        case Opcode::multi: return "multi";
        case Opcode::create2: return "create2";
        case Opcode::reconfig: return "reconfig";
        case Opcode::check_watches: return "check_watches";
        case Opcode::remove_watches: return "remove_watches";
        case Opcode::create_container: return "create_container";
        case Opcode::delete_container: return "delete_container";
        case Opcode::create_ttl: return "create_ttl";
        case Opcode::multi_read: return "multi_read";
        case Opcode::auth: return "auth";
        case Opcode::set_watches: return "set_watches";
        case Opcode::sasl: return "sasl";
        case Opcode::get_ephemerals: return "get_ephemerals";
        case Opcode::get_all_children_number: return "get_all_children_number";
        case Opcode::set_watches2: return "set_watches2";
        case Opcode::add_watch: return "add_watch";
        case Opcode::who_am_i: return "who_am_i";
    }
    return "opcode " + std::to_string(static_cast<std::int32_t>(opcode));
}

bool is_write(Opcode opcode) {
    switch (opcode) {
        case Opcode::create:
        case Opcode::create2:
        case Opcode::create_container:
        case Opcode::create_ttl:
        case Opcode::remove:
        case Opcode::delete_container:
        case Opcode::set_data:
        case Opcode::set_acl:
        case Opcode::multi:
        case Opcode::reconfig: return true;
        default: return false;
    }
}

namespace wire {

std::string_view Reader::take(std::size_t size) {
    if (failed_ || size > rest_.size()) {
        failed_ = true;
        return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
}

namespace {

template <typename Value>
std::optional<Value> big_endian(std::string_view bytes) {
    if (bytes.size() != sizeof(Value)) {
        return std::nullopt;
    }
    std::uint64_t value = 0;
    for (const char byte : bytes) {
        value = (value << 8) | static_cast<unsigned char>(byte);
    }
    return static_cast<Value>(value);
}

void append_big_endian(std::string& bytes, std::uint64_t value, int size) {
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
        bytes.push_back(static_cast<char>(value >> shift));
    }
}

}  // namespace

std::optional<std::int8_t> Reader::byte() { return big_endian<std::int8_t>(take(1)); }
std::optional<std::int32_t> Reader::int32() { return big_endian<std::int32_t>(take(4)); }
std::optional<std::int64_t> Reader::int64() { return big_endian<std::int64_t>(take(8)); }

std::optional<std::string> Reader::text() {
    const auto length = int32();
    if (!length || *length < -1) {
        failed_ = true;
        return std::nullopt;
    }
    const std::string_view taken = take(*length == -1 ? 0 : static_cast<std::size_t>(*length));
    return failed_ ? std::nullopt : std::optional(std::string(taken));
}

Writer& Writer::byte(std::int8_t value) {
    bytes_.push_back(static_cast<char>(value));
    return *this;
}
Writer& Writer::int32(std::int32_t value) {
    append_big_endian(bytes_, static_cast<std::uint32_t>(value), 4);
    return *this;
}
Writer& Writer::int64(std::int64_t value) {
    append_big_endian(bytes_, static_cast<std::uint64_t>(value), 8);
    return *this;
}
Writer& Writer::text(std::string_view value) {
    int32(static_cast<std::int32_t>(value.size()));
    return raw(value);
}
Writer& Writer::raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
}
std::string Writer::frame() const {
    std::string framed;
    framed.reserve(bytes_.size() + 4);
    append_big_endian(framed, bytes_.size(), 4);
    return framed + bytes_;
}

std::optional<std::string> FrameSplitter::next() {
    if (broken_ || buffered() < 4) {
        return std::nullopt;
    }
    const auto length = *big_endian<std::int32_t>(std::string_view(buffer_).substr(begin_, 4));
    if (length < 0 || length > longest) {
        broken_ = true;
        return std::nullopt;
    }
    const auto size = static_cast<std::size_t>(length) + 4;
    if (buffered() < size) {
        return std::nullopt;
    }
    std::string frame = buffer_.substr(begin_, size);
    begin_ += size;
    // Free memory now and then instead of moving the rest for every frame.
    if (begin_ == buffer_.size() || begin_ > 64 * 1024) {
        buffer_.erase(0, begin_);
        begin_ = 0;
    }
    return frame;
}

std::string FrameSplitter::take_rest() {
    std::string rest = buffer_.substr(begin_);
    buffer_.clear();
    begin_ = 0;
    return rest;
}

std::string_view body(std::string_view frame) { return frame.substr(std::min<std::size_t>(4, frame.size())); }

std::optional<ConnectRequest> parse_connect_request(std::string_view body) {
    Reader reader(body);
    ConnectRequest request;
    const auto protocol = reader.int32();
    const auto zxid = reader.int64();
    const auto timeout = reader.int32();
    const auto session = reader.int64();
    auto password = reader.text();
    if (!protocol || !password) {
        return std::nullopt;
    }
    return ConnectRequest{*zxid, *timeout, *session, std::move(*password)};
}

std::optional<ConnectResponse> parse_connect_response(std::string_view body) {
    Reader reader(body);
    const auto protocol = reader.int32();
    const auto timeout = reader.int32();
    const auto session = reader.int64();
    auto password = reader.text();
    if (!protocol || !password) {
        return std::nullopt;
    }
    return ConnectResponse{*timeout, *session, std::move(*password)};
}

namespace {

// Skips the fields after the path, to find the next part of a multi; adds the length of the data. Only opcodes that a
// multi may contain.
bool skip_part(Reader& reader, Opcode opcode, std::size_t& data_bytes) {
    switch (opcode) {
        case Opcode::create:
        case Opcode::create2:
        case Opcode::create_container:
        case Opcode::create_ttl: {
            data_bytes += reader.text().value_or("").size();
            const auto entries = reader.int32();
            for (std::int32_t i = 0; i < entries.value_or(0) && !reader.failed(); ++i) {
                reader.int32();
                reader.text();
                reader.text();
            }
            reader.int32();  // flags
            if (opcode == Opcode::create_ttl) {
                reader.int64();
            }
            break;
        }
        case Opcode::set_data:
            data_bytes += reader.text().value_or("").size();
            reader.int32();
            break;
        case Opcode::remove:
        case Opcode::check: reader.int32(); break;
        case Opcode::get_data:
        case Opcode::get_children: reader.byte(); break;
        default: return false;
    }
    return !reader.failed();
}

void parse_multi(Reader& reader, RequestHead& head) {
    for (;;) {
        const auto opcode = reader.int32();
        const auto done = reader.byte();
        const auto error = reader.int32();
        if (!error || *done != 0) {
            break;
        }
        auto path = reader.text();
        if (!path) {
            break;
        }
        head.parts.push_back({static_cast<Opcode>(*opcode), std::move(*path)});
        if (!skip_part(reader, head.parts.back().opcode, head.data_bytes)) {
            break;
        }
    }
    if (!head.parts.empty()) {
        head.path = head.parts.front().path;
    }
}

}  // namespace

std::optional<RequestHead> parse_request(std::string_view body) {
    Reader reader(body);
    const auto xid = reader.int32();
    const auto opcode = reader.int32();
    if (!opcode) {
        return std::nullopt;
    }
    RequestHead head;
    head.xid = *xid;
    head.opcode = static_cast<Opcode>(*opcode);
    switch (head.opcode) {
        case Opcode::create:
        case Opcode::create2:
        case Opcode::create_container:
        case Opcode::create_ttl: {
            head.path = reader.text().value_or("");
            head.data_bytes = reader.text().value_or("").size();
            const auto entries = reader.int32();
            for (std::int32_t i = 0; i < entries.value_or(0) && !reader.failed(); ++i) {
                reader.int32();
                reader.text();
                reader.text();
            }
            head.flags = reader.int32().value_or(0);
            break;
        }
        case Opcode::multi:
        case Opcode::multi_read: parse_multi(reader, head); break;
        case Opcode::set_data:
            head.path = reader.text().value_or("");
            head.data_bytes = reader.text().value_or("").size();
            break;
        case Opcode::remove:
        case Opcode::exists:
        case Opcode::get_data:
        case Opcode::get_acl:
        case Opcode::set_acl:
        case Opcode::get_children:
        case Opcode::get_children2:
        case Opcode::sync:
        case Opcode::check:
        case Opcode::check_watches:
        case Opcode::remove_watches:
        case Opcode::delete_container:
        case Opcode::get_ephemerals:
        case Opcode::get_all_children_number:
        case Opcode::add_watch: head.path = reader.text().value_or(""); break;
        default: break;
    }
    return head;
}

std::optional<ReplyHead> parse_reply(std::string_view body) {
    Reader reader(body);
    const auto xid = reader.int32();
    const auto zxid = reader.int64();
    const auto error = reader.int32();
    if (!error) {
        return std::nullopt;
    }
    return ReplyHead{*xid, *zxid, *error};
}

std::optional<Event> parse_event(std::string_view body) {
    Reader reader(body);
    reader.int32();
    reader.int64();
    reader.int32();
    const auto type = reader.int32();
    const auto state = reader.int32();
    auto path = reader.text();
    if (!path) {
        return std::nullopt;
    }
    return Event{*type, *state, std::move(*path)};
}

std::optional<Stat> read_stat(Reader& reader) {
    Stat stat;
    const auto read64 = [&](std::int64_t& field) { field = reader.int64().value_or(0); };
    const auto read32 = [&](std::int32_t& field) { field = reader.int32().value_or(0); };
    read64(stat.czxid);
    read64(stat.mzxid);
    read64(stat.ctime);
    read64(stat.mtime);
    read32(stat.version);
    read32(stat.cversion);
    read32(stat.aversion);
    read64(stat.ephemeral_owner);
    read32(stat.data_length);
    read32(stat.num_children);
    read64(stat.pzxid);
    return reader.failed() ? std::nullopt : std::optional(stat);
}

std::string connect_request(const ConnectRequest& request) {
    return Writer()
        .int32(0)
        .int64(request.last_zxid)
        .int32(request.timeout_ms)
        .int64(request.session_id)
        .text(request.password)
        .byte(0)  // not read-only
        .frame();
}

std::string request(std::int32_t xid, Opcode opcode, std::string_view rest) {
    return Writer().int32(xid).int32(static_cast<std::int32_t>(opcode)).raw(rest).frame();
}

}  // namespace wire
}  // namespace zkrecipes::testenv
