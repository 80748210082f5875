#include "quorum_links.hpp"

#include "gate_connection.hpp"

namespace zkrecipes::testenv::internal {

std::optional<std::string> rewrite_election_hello(const std::string& bytes, const std::string& address) {
    // protocol version (-65536: one address; -65535: several), the sender's id, length, "host:port|host:port".
    constexpr std::int32_t longest = 2048;
    wire::Reader reader(bytes);
    const auto version = reader.int64();
    const auto id = reader.int64();
    const auto length = reader.int32();
    if (version && *version != -65536 && *version != -65535) {
        return bytes;
    }
    if (!length) {
        return std::nullopt;
    }
    if (*length <= 0 || *length > longest) {
        return bytes;
    }
    if (reader.rest().size() < static_cast<std::size_t>(*length)) {
        return std::nullopt;
    }
    return wire::Writer()
        .int64(*version)
        .int64(*id)
        .text(address)
        .raw(reader.rest().substr(static_cast<std::size_t>(*length)))
        .bytes();
}

QuorumLinks::QuorumLinks(std::vector<Member> members) : members_(std::move(members)), loop_(Loop::shared()) {
    const int size = static_cast<int>(members_.size());
    for (int from = 0; from < size; ++from) {
        for (int to = 0; to < size; ++to) {
            if (from != to) {
                links_[{from, to}].claim = AddressClaim("");
            }
        }
    }
    for (const auto& [pair, link] : links_) {
        open_link(pair.first, pair.second);
    }
}

QuorumLinks::~QuorumLinks() {
    for (auto& [pair, link] : links_) {
        link.quorum->close();
        link.election->close();
    }
}

void QuorumLinks::open_link(int from, int to) {
    Link& link = links_.at({from, to});
    const Member& target = members_[static_cast<std::size_t>(to)];
    const auto gate = [&](std::uint16_t port) {
        return std::make_shared<GateCore>(loop_, Endpoint{target.address, port}, Endpoint{link.claim.address(), port});
    };
    link.quorum = gate(target.quorum_port);
    link.election = gate(target.election_port);
    // `to` must connect back to the address under which it knows `from`.
    const Endpoint back{links_.at({to, from}).claim.address(), members_[static_cast<std::size_t>(from)].election_port};
    link.election->stream_head = [address = back.str()](const std::string& bytes) {
        return rewrite_election_hello(bytes, address);
    };
    link.quorum->open();
    link.election->open();
}

std::vector<std::string> QuorumLinks::lines_for(int i) const {
    std::vector<std::string> lines;
    for (int j = 0; j < static_cast<int>(members_.size()); ++j) {
        const Member& member = members_[static_cast<std::size_t>(j)];
        const std::string& address = i == j ? member.address : links_.at({i, j}).claim.address();
        lines.push_back("server." + std::to_string(j + 1) + "=" + address + ":" + std::to_string(member.quorum_port) +
                        ":" + std::to_string(member.election_port));
    }
    return lines;
}

void QuorumLinks::set_cut(int from, int to, bool cut) {
    const std::lock_guard lock(loop_->mutex());
    // Either member may have opened the connection.
    Link& forth = links_.at({from, to});
    Link& back = links_.at({to, from});
    forth.quorum->hole_to_server = forth.election->hole_to_server = cut;
    back.quorum->hole_to_client = back.election->hole_to_client = cut;
    for (const auto& gate : {forth.quorum, forth.election, back.quorum, back.election}) {
        gate->settle_all();
    }
}

}  // namespace zkrecipes::testenv::internal
