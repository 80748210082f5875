// The tests that the server in memory has to pass (tests/unit/testing/double_contract_test.cpp), on a real one.
#include "support/double_contract.hpp"

#include <zkrecipes/testenv/available.hpp>
#include <zkrecipes/testenv/gate.hpp>
#include <zkrecipes/testenv/raw_client.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "support/server_version.hpp"

namespace zkrecipes::test {
namespace {

class RealBackend {
public:
    static constexpr int kRounds = 3;
    static std::string why_unavailable() { return testenv::why_unavailable(); }
    Session session(SessionOptions options) {
        options.hosts = gate_.connect_string();
        return Session(std::move(options));
    }
    static std::string path(const std::string& name) { return "/test/" + name; }
    void expire(const Session& session) { gate_.expire(session.info().session_id); }
    void lose(const Grant& grant) { observer_.remove(grant.node()); }
    void cut() {
        gate_.refuse();
        gate_.reset_all();
    }
    void heal() { gate_.pass(); }
    testenv::Fault cut_after_create(const std::string& part) {
        return gate_.cut_after(testenv::Match::create().path(part));
    }
    std::vector<std::string> children(const std::string& path) {
        return observer_.children(path).value_or(std::vector<std::string>());
    }
    std::optional<std::string> data(const std::string& path) {
        const auto node = observer_.get(path);
        return node ? std::optional(node->data) : std::nullopt;
    }
    bool exists_needs_read() const { return test::exists_needs_read(server_); }

private:
    testenv::ZkServer server_;
    testenv::Gate gate_{server_.endpoint()};
    testenv::RawClient observer_{server_.connect_string()};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Real, DoubleContract, RealBackend);

}  // namespace
}  // namespace zkrecipes::test
