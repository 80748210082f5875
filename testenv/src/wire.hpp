#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <zkrecipes/testenv/protocol.hpp>

namespace zkrecipes::testenv::wire {

// ZooKeeper's client protocol, as far as an observer needs it. Pure: bytes in, values out, no I/O. For any bytes, the
// readers neither throw nor read past the end: they return std::nullopt.
//
// Every message is a frame: four bytes of length, big-endian, then that many bytes. The first frame of either side is
// the connect handshake, without a header. Later requests start with (xid, opcode), answers with (xid, zxid, error).

/// xids with a special meaning.
inline constexpr std::int32_t xid_event = -1;
inline constexpr std::int32_t xid_ping = -2;
inline constexpr std::int32_t xid_auth = -4;
inline constexpr std::int32_t xid_set_watches = -8;

/// Reads big-endian integers, strings and buffers from a byte sequence. After the first failure all further reads fail.
class Reader {
public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}
    std::optional<std::int8_t> byte();
    std::optional<std::int32_t> int32();
    std::optional<std::int64_t> int64();
    /// A length and that many bytes. Length -1 is a null, read as empty.
    std::optional<std::string> text();
    [[nodiscard]] bool failed() const { return failed_; }
    [[nodiscard]] std::string_view rest() const { return rest_; }

private:
    std::string_view take(std::size_t size);
    std::string_view rest_;
    bool failed_ = false;
};

class Writer {
public:
    Writer& byte(std::int8_t value);
    Writer& int32(std::int32_t value);
    Writer& int64(std::int64_t value);
    Writer& text(std::string_view value);
    Writer& raw(std::string_view bytes);
    /// The written bytes, preceded by their length.
    [[nodiscard]] std::string frame() const;
    [[nodiscard]] const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

/// Cuts a byte stream into frames.
class FrameSplitter {
public:
    /// The longest accepted frame. Servers accept about 1 MB by default; a much longer one is another protocol.
    static constexpr std::int32_t longest = 64 * 1024 * 1024;

    void feed(std::string_view bytes) { buffer_.append(bytes); }
    /// The next complete frame, including its four bytes of length. Empty: more bytes are needed, or broken().
    [[nodiscard]] std::optional<std::string> next();
    /// Whether the next length is negative or too large, so that the rest of the stream cannot be parsed. This also
    /// happens with four-letter words ("srvr" is a length of 1.9 GB).
    [[nodiscard]] bool broken() const { return broken_; }
    /// The remaining bytes, for streams that are broken or forwarded unchanged.
    [[nodiscard]] std::string take_rest();
    [[nodiscard]] std::size_t buffered() const { return buffer_.size() - begin_; }

private:
    std::string buffer_;
    std::size_t begin_ = 0;
    bool broken_ = false;
};

/// The frame without its length.
[[nodiscard]] std::string_view body(std::string_view frame);

struct ConnectRequest {
    std::int64_t last_zxid = 0;
    std::int32_t timeout_ms = 0;
    std::int64_t session_id = 0;
    std::string password;
};
struct ConnectResponse {
    std::int32_t timeout_ms = 0;  // 0: the session is over
    std::int64_t session_id = 0;
    std::string password;
};
struct RequestHead {
    std::int32_t xid = 0;
    Opcode opcode{};
    std::string path;               // empty for opcodes without one; of a multi: the first part's
    std::vector<SubRequest> parts;  // of a multi
    std::int32_t flags = 0;         // of a create
    std::size_t data_bytes = 0;     // of creates and set_data, also in a multi
};
struct ReplyHead {
    std::int32_t xid = 0;
    std::int64_t zxid = 0;
    std::int32_t error = 0;
};
struct Event {
    std::int32_t type = 0;
    std::int32_t state = 0;
    std::string path;
};

// All of these take the body of a frame.
[[nodiscard]] std::optional<ConnectRequest> parse_connect_request(std::string_view body);
[[nodiscard]] std::optional<ConnectResponse> parse_connect_response(std::string_view body);
/// Requires the xid and the opcode. If the rest cannot be parsed, the path is empty.
[[nodiscard]] std::optional<RequestHead> parse_request(std::string_view body);
[[nodiscard]] std::optional<ReplyHead> parse_reply(std::string_view body);
/// The event in a frame whose reply head has xid_event.
[[nodiscard]] std::optional<Event> parse_event(std::string_view body);
[[nodiscard]] std::optional<Stat> read_stat(Reader& reader);

/// Frames, ready to be sent.
[[nodiscard]] std::string connect_request(const ConnectRequest& request);
[[nodiscard]] std::string request(std::int32_t xid, Opcode opcode, std::string_view rest = {});

}  // namespace zkrecipes::testenv::wire
