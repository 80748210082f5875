// The C client looks its servers' names up before each ping, unless told not to: while the name service is down it then
// does not ping, and the session expires without a word. Here every look-up of this program is counted and can fail.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <atomic>

#include <zkrecipes/testenv/gate.hpp>

#include "support/client_test_handle.hpp"
#include "support/zk_server_test.hpp"

namespace {

std::atomic<int> lookups = 0;
std::atomic<bool> name_service_is_down = false;

}  // namespace

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** result) {
    ++lookups;
    if (name_service_is_down) return EAI_AGAIN;
    static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
    return real(name, service, hints, result);
}

namespace zkrecipes::internal {
namespace {

class ClientLookupTest : public test::ZkServerTest {
protected:
    void SetUp() override {
        ZkServerTest::SetUp();
        if (IsSkipped()) return;
        ZKRECIPES_NEEDS_OWN_SERVER();
    }
    void TearDown() override {
        name_service_is_down = false;
        ZkServerTest::TearDown();
    }
};

TEST_F(ClientLookupTest, AConnectedHandleLooksNothingUp) {
    TestHandle handle(connect_string());
    ASSERT_TRUE(handle.connected());
    const int before = lookups;
    EXPECT_GT(before, 0) << "look-ups are not counted";
    for (int i = 0; i < 200; ++i) EXPECT_EQ(handle.async_exists("/").wait().rc, Rc::ok);
    EXPECT_EQ(lookups, before);
}

TEST_F(ClientLookupTest, ASessionOutlivesTheNameService) {
    testenv::Gate gate(server().endpoint());
    TestHandle handle(gate.connect_string(), std::chrono::seconds(12));
    ASSERT_TRUE(handle.connected());
    name_service_is_down = true;
    gate.reset_trace();
    EXPECT_TRUE(test::await([&] { return gate.counts()[testenv::Opcode::ping] >= 2; }));  // sent when nothing else is
    EXPECT_EQ(handle.events->statuses().size(), 1U);
    EXPECT_EQ(handle.async_exists("/").wait().rc, Rc::ok);
}

TEST_F(ClientLookupTest, AHandleConnectsOnceTheNameServiceIsBack) {
    name_service_is_down = true;
    TestHandle handle("localhost:1");
    EXPECT_EQ(handle.async_exists("/").wait().rc, Rc::not_connected);
    handle.client->set_servers({connect_string()});
    name_service_is_down = false;
    EXPECT_TRUE(handle.connected());
}

}  // namespace
}  // namespace zkrecipes::internal
