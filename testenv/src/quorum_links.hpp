#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include <zkrecipes/testenv/endpoint.hpp>

#include "gate_core.hpp"

namespace zkrecipes::testenv::internal {

/// All connections between the members of an ensemble, through gates: for each ordered pair (i, j) an address under
/// which i, and only i, knows j. So every direction of every pair can be cut, without network namespaces.
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
    /// What `from` sends to `to` gets lost, or arrives.
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

/// The first message on an election connection holds the address under which its sender can be reached; a member with a
/// greater number hangs up and connects to that, which would be a connection past the gates. Answers the bytes with
/// that address replaced; nothing while the message is not complete. Bytes that are no such message stay as they are.
[[nodiscard]] std::optional<std::string> rewrite_election_hello(const std::string& bytes, const std::string& address);

}  // namespace zkrecipes::testenv::internal
