#pragma once

#include <deque>
#include <optional>
#include <string>

#include "gate_core.hpp"

namespace zkrecipes::testenv::internal {

/// One connection through a gate: two sockets, and for each direction a queue of what was read and not yet written.
///
/// Whatever happens ends in settle(), which writes what may be written, closes what is over, and says to the loop what
/// is of interest next. It may remove the connection from its gate, so it always comes last.
class GateConnection : public std::enable_shared_from_this<GateConnection> {
public:
    GateConnection(GateCore& gate, std::uint64_t id, UniqueFd client);
    ~GateConnection();

    void settle();
    void reset();             ///< RST to both sides, now
    void end_for(Side told);  ///< RST to one side; the other hears nothing any more
    [[nodiscard]] Clock::time_point next_due() const;

private:
    struct Chunk {
        enum class Kind { data, end, cut };
        Kind kind = Kind::data;
        std::string bytes;
        std::size_t written = 0;
        Clock::time_point due;
        std::optional<Record> record;       // for the trace, when it has been handed on
        std::shared_ptr<FaultState> fault;  // that holds or cuts it
        bool passes_held = false;           // answers to pings do not wait behind a held reply
    };
    struct Socket {
        UniqueFd fd;
        std::uint64_t token = 0;
        std::uint32_t interest = 0;
        bool connecting = false;
        bool broken_in_hole = false;  // the end of this one is news that a black hole swallows
        bool write_blocked = false;
    };
    struct Pipe {
        Direction direction{};
        Socket* source = nullptr;
        Socket* sink = nullptr;
        wire::FrameSplitter splitter;
        std::string head;        // of a raw stream whose beginning is being rewritten
        bool head_done = false;  // also: the handshake has been seen
        bool raw = false;
        std::deque<Chunk> queue;
        std::size_t queued = 0;
        bool end_read = false;
        bool end_written = false;
        bool swallow = false;  // nobody is left to write to
    };
    struct Pending {
        std::int32_t xid = 0;
        Opcode opcode{};
        std::string path;
        std::shared_ptr<FaultState> fault;
    };

    void connect_to_server();
    void on_event(Socket& socket, std::uint32_t events);
    void read_from(Pipe& pipe);
    void take_bytes(Pipe& pipe, std::string_view bytes);
    void take_raw(Pipe& pipe, std::string_view bytes);
    void take_request(std::string frame);
    void take_reply(std::string frame);
    void take_first_request(std::string frame);
    void take_first_reply(std::string frame);
    void push(Pipe& pipe, Chunk chunk);
    void pump(Pipe& pipe);
    bool write_chunk(Pipe& pipe, Chunk& chunk);
    void cut();  ///< orderly towards the server, so that what it was sent before is executed
    void cut_for(FaultState& fault);
    void broken(Pipe& pipe);  ///< reading from its source failed
    void update_interest(Socket& socket, const Pipe& reads);
    void close_socket(Socket& socket, bool with_reset);
    [[nodiscard]] Record new_record(Record::Kind kind, Opcode opcode) const;
    [[nodiscard]] Pipe& pipe_reading(const Socket& socket) { return &socket == &client_ ? to_server_ : to_client_; }

    GateCore& gate_;
    const std::uint64_t id_;
    Socket client_;
    Socket server_;
    Pipe to_server_;
    Pipe to_client_;
    std::int64_t session_ = 0;
    std::deque<Pending> pending_;
    bool cut_ = false;
    bool over_ = false;
};

}  // namespace zkrecipes::testenv::internal
