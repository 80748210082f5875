#include <zkrecipes/testenv/zk_server.hpp>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <optional>
#include <sstream>
#include <vector>
#include <zkrecipes/testenv/available.hpp>
#include <zkrecipes/testenv/raw_client.hpp>
#include <zkrecipes/testenv/sessions.hpp>

#include "support/zk_server_test.hpp"

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;
using testenv::CreateMode;
using testenv::RawClient;
using testenv::RawClientOptions;
using testenv::ServerOptions;
using testenv::ZkServer;

class TestenvServerTest : public testing::Test {
protected:
    void SetUp() override { ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER(); }
};

/// Sets an environment variable for the length of a test.
class ScopedVariable {
public:
    ScopedVariable(const char* name, const std::string& value) : name_(name) {
        if (const char* before = std::getenv(name)) {
            before_ = before;
        }
        ::setenv(name, value.c_str(), 1);
    }
    ~ScopedVariable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
    ScopedVariable(const ScopedVariable&) = delete;
    ScopedVariable& operator=(const ScopedVariable&) = delete;

private:
    const char* name_;
    std::optional<std::string> before_;
};

TEST_F(TestenvServerTest, AnswersWhenTheConstructorReturns) {
    const ZkServer server;
    EXPECT_TRUE(server.running());
    EXPECT_EQ(server.mode(), "standalone");
    EXPECT_EQ(server.connect_string().rfind("127.", 0), 0U);
    EXPECT_EQ(server.watch_count(), 0);
    EXPECT_NE(server.four_letter("mntr").find("zk_znode_count"), std::string::npos);
}

TEST_F(TestenvServerTest, ServersHaveAddressesOfTheirOwnAndLeaveNothingBehind) {
    std::string directory;
    std::string address;
    {
        const ZkServer first;
        const ZkServer second;
        EXPECT_NE(first.endpoint().address, second.endpoint().address);
        EXPECT_EQ(first.endpoint().port, second.endpoint().port);
        directory = first.directory();
        address = first.endpoint().address;
        EXPECT_TRUE(std::filesystem::exists(directory));
        ServerOptions same;
        same.address = address;
        EXPECT_THROW(ZkServer{same}, testenv::Error);
    }
    EXPECT_FALSE(std::filesystem::exists(directory));
    ServerOptions same;
    same.address = address;
    same.deferred = true;
    EXPECT_EQ(ZkServer(same).endpoint().address, address);
}

TEST_F(TestenvServerTest, KeepsNodesAndSessionsOverAKillAndLosesThemWhenWiped) {
    ZkServer server;
    RawClientOptions options;
    options.session_timeout = 60s;
    RawClient client(server.connect_string(), options);
    client.create("/kept");
    client.create("/mine", "data", CreateMode::ephemeral);
    const auto endpoint = server.endpoint();
    server.restart();
    EXPECT_EQ(server.endpoint(), endpoint);
    EXPECT_TRUE(client.exists("/kept"));  // the same session, on a new connection
    EXPECT_EQ(client.exists("/mine")->ephemeral_owner, client.session_id());
    client.abandon();
    server.kill();
    EXPECT_FALSE(server.running());
    EXPECT_FALSE(server.serving());
    server.wipe_data();
    server.start();
    EXPECT_FALSE(RawClient(server.connect_string()).exists("/kept"));
}

TEST_F(TestenvServerTest, RunningServerIsNotWiped) {
    ZkServer server;
    EXPECT_THROW(server.wipe_data(), testenv::Error);
}

TEST_F(TestenvServerTest, StopsInOrderAlsoWhenItWasFrozen) {
    ZkServer server;
    server.freeze();
    server.stop();
    EXPECT_FALSE(server.running());
    server.stop();
    server.start();
    EXPECT_TRUE(server.serving());
}

TEST_F(TestenvServerTest, FrozenServerKeepsItsConnectionsAndAnswersWhenThawed) {
    ZkServer server;
    RawClientOptions options;
    options.session_timeout = 60s;
    RawClient client(server.connect_string(), options);
    server.freeze();
    auto answer = client.send(testenv::Opcode::create, RawClient::create_body("/a", "", 0));
    EXPECT_THROW((void)server.four_letter("srvr", 100ms), testenv::Error);
    EXPECT_EQ(answer.wait_for(0s), std::future_status::timeout);
    EXPECT_TRUE(client.connected());
    server.thaw();
    ASSERT_EQ(answer.wait_for(kMaxWait), std::future_status::ready);
    EXPECT_EQ(answer.get().error, 0);
}

TEST_F(TestenvServerTest, ExpiresASessionAtOnce) {
    const ZkServer server;
    RawClientOptions options;
    options.session_timeout = 60s;
    options.reconnect = false;
    RawClient client(server.connect_string(), options);
    RawClient observer(server.connect_string());
    client.create("/mine", "", CreateMode::ephemeral);
    server.expire_session(client.session_id(), client.password());
    EXPECT_FALSE(observer.exists("/mine"));
    EXPECT_TRUE(await([&] { return !client.connected(); }));
    EXPECT_FALSE(testenv::expire_session(server.endpoint(), client.session_id(), client.password()));
}

TEST_F(TestenvServerTest, WrongPasswordExpiresNothing) {
    const ZkServer server;
    RawClient client(server.connect_string());
    EXPECT_FALSE(testenv::expire_session(server.endpoint(), client.session_id(), std::string(16, 'x')));
    // The server hangs up on the session's old connection before it looks at the password; the session lives on.
    client.reconnect();
    EXPECT_FALSE(client.exists("/nothing"));
}

TEST_F(TestenvServerTest, CountsWatches) {
    const ZkServer server;
    RawClient client(server.connect_string());
    EXPECT_FALSE(client.exists("/a", true));
    EXPECT_FALSE(client.exists("/b", true));
    EXPECT_EQ(server.watch_count(), 2);
    EXPECT_EQ(server.connection_count(), 1);
    client.create("/a");
    const auto event = client.next_event();
    ASSERT_TRUE(event);
    EXPECT_EQ(event->type, 1);
    EXPECT_EQ(event->path, "/a");
    EXPECT_EQ(server.watch_count(), 1);
}

TEST_F(TestenvServerTest, TakesSessionLimitsPropertiesAndConfigurationLines) {
    ServerOptions options;
    options.min_session_timeout = 3000ms;
    options.max_session_timeout = 5000ms;
    options.java_properties["znode.container.checkIntervalMs"] = "50";
    options.config_lines.push_back("snapCount=4711");
    const ZkServer server(options);
    EXPECT_NE(server.four_letter("conf").find("minSessionTimeout=3000"), std::string::npos);
    RawClientOptions wish;
    wish.session_timeout = 60s;
    RawClient client(server.connect_string(), wish);
    EXPECT_EQ(client.session_timeout(), 5s);
    client.create("/container", "", CreateMode::container);
    client.create("/container/child");
    client.remove("/container/child");
    EXPECT_TRUE(await([&] { return !client.exists("/container"); }));
}

TEST_F(TestenvServerTest, ServerThatDoesNotComeUpSaysWhy) {
    ServerOptions options;
    options.config_lines.push_back("clientPortAddress=not an address");
    try {
        const ZkServer server(options);
        FAIL() << "it should not start";
    } catch (const testenv::Error& error) {
        EXPECT_NE(std::string(error.what()).find("ended while it was starting"), std::string::npos);
        EXPECT_NE(std::string(error.what()).find("not an address"), std::string::npos) << error.what();
    }
}

TEST_F(TestenvServerTest, LauncherIsPutBeforeJava) {
    ServerOptions options;
    options.launcher = {"env", "ZKRECIPES_LAUNCHED=yes"};
    options.environment = {"ZKRECIPES_MORE=yes"};
    const ZkServer server(options);
    std::ifstream file("/proc/" + std::to_string(server.pid()) + "/environ");
    const std::string environment{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(environment.find("ZKRECIPES_LAUNCHED=yes"), std::string::npos);
    EXPECT_NE(environment.find("ZKRECIPES_MORE=yes"), std::string::npos);
}

/// Processes whose command line has this in it.
int processes_with(const std::string& text) {
    int found = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        std::ostringstream line;  // a process that ends meanwhile is none of them, and no exception
        line << std::ifstream(entry.path() / "cmdline").rdbuf();
        found += line.str().find(text) != std::string::npos ? 1 : 0;
    }
    return found;
}

TEST_F(TestenvServerTest, LauncherThatForksTakesJavaWithIt) {
    std::string directory;
    {
        ServerOptions options;
        options.launcher = {"sh", "-c", "\"$@\"; exit 0", "sh"};
        ZkServer server(options);
        directory = server.directory();
        EXPECT_EQ(processes_with(directory), 2);
        server.freeze();
        EXPECT_THROW((void)server.four_letter("srvr", 100ms), testenv::Error);
        server.thaw();
        EXPECT_TRUE(await([&] { return server.serving(); }));
        server.restart();
        EXPECT_EQ(processes_with(directory), 2);
    }
    EXPECT_TRUE(await([&] { return processes_with(directory) == 0; }));
}

TEST_F(TestenvServerTest, RunsWithoutAClassDataArchive) {
    const ScopedVariable off("ZKRECIPES_TESTENV_CLASS_DATA", "off");
    const ScopedVariable other_java("ZK_CLASSPATH", "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-nop.jar");
    if (!testenv::why_unavailable().empty()) {
        GTEST_SKIP() << testenv::why_unavailable();
    }
    EXPECT_TRUE(ZkServer().serving());
}

TEST(TestenvAvailableTest, MissingJavaIsNamedWithItsRemedy) {
    const ScopedVariable path("PATH", "/nowhere");
    const ScopedVariable java("ZK_JAVA", "");
    const ScopedVariable home("JAVA_HOME", "");
    EXPECT_NE(testenv::why_unavailable().find("apt-get install default-jre-headless"), std::string::npos);
    EXPECT_THROW(ZkServer{}, testenv::MissingDependency);
}

TEST(TestenvAvailableTest, WrongChoicesAreNamed) {
    {
        const ScopedVariable java("ZK_JAVA", "/no/such/java");
        EXPECT_NE(testenv::why_unavailable().find("/no/such/java"), std::string::npos);
    }
    const ScopedVariable java("ZK_JAVA", "/bin/sh");
    {
        const ScopedVariable jars("ZK_CLASSPATH", "/no/such.jar");
        EXPECT_NE(testenv::why_unavailable().find("/no/such.jar"), std::string::npos);
    }
    const ScopedVariable jars("ZK_CLASSPATH", "");
    const ScopedVariable home("ZOOKEEPER_HOME", "/no/such/home");
    EXPECT_NE(testenv::why_unavailable().find("/no/such/home"), std::string::npos);
}

class SharedServerTest : public ZkServerTest {};

TEST_F(SharedServerTest, GivesEachTestARootOfItsOwn) {
    RawClient client(connect_string());
    EXPECT_FALSE(client.exists(root()));
    EXPECT_NE(root().find("GivesEachTestARootOfItsOwn"), std::string::npos);
    client.make_path(path("a/b"));
    EXPECT_TRUE(client.exists(root() + "/a/b"));
    client.remove_tree(root());
}

}  // namespace
}  // namespace zkrecipes::test
