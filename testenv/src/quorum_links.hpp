#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include <zkrecipes/testenv/endpoint.hpp>

#include "gate_core.hpp"

namespace zkrecipes::testenv::internal {

/// The gates between the members of an ensemble. Each ordered pair (i, j) has an address under which only i knows j. So
/// every direction of every pair can be cut without network namespaces.
class QuorumLinks {
public:
    struct Member {
        std::string address;
        std::uint16_t quorum_port = 0;
        std::uint16_t election_port = 0;
    };
    explicit QuorumLinks(std::vector<Member> members);
    ~QuorumLinks();
    QuorumLinks(const QuorumLinks&) = delete;
    QuorumLinks& operator=(const QuorumLinks&) = delete;

    /// The server.N lines of member i.
    [[nodiscard]] std::vector<std::string> lines_for(int i) const;
    /// Packets from `from` to `to` are lost, or arrive.
    void set_cut(int from, int to, bool cut);

private:
    struct Link {
        AddressClaim claim;
        std::shared_ptr<GateCore> quorum;
        std::shared_ptr<GateCore> election;
    };
    void open_link(int from, int to);

    const std::vector<Member> members_;
    std::shared_ptr<Loop> loop_;
    std::map<std::pair<int, int>, Link> links_;
};

/// The first message on an election connection contains the address of its sender. A member with a greater number hangs
/// up and connects to that address, which would bypass the gates. Returns the bytes with that address replaced, or
/// nothing while the message is incomplete. Other bytes do not change.
[[nodiscard]] std::optional<std::string> rewrite_election_hello(const std::string& bytes, const std::string& address);

}  // namespace zkrecipes::testenv::internal
