#include <zkrecipes/testenv/zk_server.hpp>

#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

using testenv::ServerOptions;
using testenv::ZkServer;

class TestenvServerTest : public testing::Test {
protected:
    void SetUp() override { ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER(); }
};

TEST_F(TestenvServerTest, AnswersWhenTheConstructorReturns) {
    const ZkServer server;
    EXPECT_TRUE(server.running());
    EXPECT_EQ(server.mode(), "standalone");
    EXPECT_EQ(server.connect_string().rfind("127.", 0), 0U);
    EXPECT_EQ(server.watch_count(), 0);
}

}  // namespace
}  // namespace zkrecipes::test
