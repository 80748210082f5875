// zklock over TLS and with SASL, and the recipe for stunnel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <regex>
#include <sstream>
#include <string>

#include "support/die_with.hpp"
#include "tls/tls_fixture.hpp"
#include "zklock/zklock_process.hpp"

namespace zkrecipes::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using zklock::test::Outcome;
using zklock::test::ZklockProcess;

class ZklockTlsTest : public TlsTest {
protected:
    static std::string connect() { return tls_endpoint().str(); }
    static std::vector<std::string> tls_arguments(const std::string& client = "client") {
        return {"--tls-ca",   certificates() + "/ca.pem",
                "--tls-cert", certificates() + "/" + client + ".pem",
                "--tls-key",  certificates() + "/" + client + "-key.pem"};
    }
    static Outcome run(std::vector<std::string> arguments, std::vector<std::string> more,
                       ZklockProcess::Setup setup = {}) {
        arguments.insert(arguments.end(), more.begin(), more.end());
        return zklock::test::zklock(arguments, std::move(setup));
    }
    static bool exists_as(const std::string& file, const std::string& text, mode_t mode = 0600) {
        std::ofstream(file) << text;
        return ::chmod(file.c_str(), mode) == 0;
    }
    testenv::Scratch scratch_;
};

TEST_F(ZklockTlsTest, RunsACommandUnderALockOverTls) {
    Recorder recorder(tls_endpoint());
    std::vector<std::string> arguments = {"--connect", recorder.connect_string()};
    for (const std::string& argument : tls_arguments()) arguments.push_back(argument);
    const Outcome outcome = run(arguments, {unlikely_path(), "--", "echo", "under the lock"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("under the lock"));
    EXPECT_GE(recorder.streams().size(), 1U);
    expect_encrypted(recorder);
}

TEST_F(ZklockTlsTest, TakesTheSettingsFromAFileAndTheEnvironment) {
    std::ofstream(scratch_ / "conf") << "connect = " << connect() << "\ntls-ca = " << certificates() << "/ca.pem\n"
                                     << "tls-cert = " << certificates() << "/client.pem\n";
    ZklockProcess::Setup setup;
    setup.environment = {"ZKLOCK_CONFIG=" + (scratch_ / "conf"),
                         "ZKLOCK_TLS_KEY=" + certificates() + "/client-key.pem"};
    const Outcome outcome = run({"ping", "--json"}, {}, setup);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("\"tls\""));
    EXPECT_THAT(outcome.out, HasSubstr(connect()));
    // Without the key there is no connection at all.
    setup.environment.pop_back();
    const Outcome refused = run({"ping"}, {}, setup);
    EXPECT_EQ(refused.code, 78);
    EXPECT_THAT(refused.err, HasSubstr("tls-ca: TLS also needs --tls-key"));
}

TEST_F(ZklockTlsTest, SaysWhatIsWrong) {
    Recorder plain(server().endpoint());
    std::vector<std::string> arguments = {"ping", "--connect-timeout", "6", "--connect", plain.connect_string()};
    Outcome outcome = run(arguments, tls_arguments());
    EXPECT_EQ(outcome.code, 69);
    EXPECT_THAT(outcome.err,
                HasSubstr(plain.connect_string() + ": closes the connection when the TLS handshake begins"));
    EXPECT_THAT(outcome.err, HasSubstr("no ZooKeeper server answered within 6"));
    EXPECT_THAT(outcome.err, HasSubstr("secureClientPort"));
    expect_encrypted(plain);

    arguments.back() = connect();
    auto others = tls_arguments();
    others[1] = certificates() + "/other-ca.pem";
    outcome = run(arguments, others);
    EXPECT_EQ(outcome.code, 69);
    EXPECT_THAT(outcome.err, HasSubstr("the certificate of the server is not accepted"));

    ASSERT_TRUE(exists_as(scratch_ / "key", "-----BEGIN PRIVATE KEY-----\n", 0644));
    others = tls_arguments();
    others[5] = scratch_ / "key";
    outcome = run(arguments, others);
    EXPECT_EQ(outcome.code, 64);
    EXPECT_THAT(outcome.err,
                HasSubstr("--tls-key: " + (scratch_ / "key") + " can be read or written by others; chmod 600"));
}

TEST_F(ZklockTlsTest, AuthenticatesBySasl) {
    testenv::ZkServer sasl(sasl_server(scratch_.path()));
    ASSERT_TRUE(exists_as(scratch_ / "password", "secret word\n"));
    ASSERT_TRUE(exists_as(scratch_ / "wrong", "wrong word\n"));
    const std::vector<std::string> arguments = {"--connect", sasl.connect_string(), "--sasl-user", "job", "--acl",
                                                "creator"};
    Outcome outcome = run(arguments, {"--sasl-password-file", scratch_ / "password", "/private/lock", "--", "env"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    ZklockProcess::Setup setup;
    setup.environment = {"ZKLOCK_SASL_PASSWORD_FILE=" + (scratch_ / "password")};
    outcome = run(arguments, {"/private/lock", "--", "env"}, setup);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, Not(HasSubstr("SASL_PASSWORD")));
    outcome = run(arguments, {"--sasl-password-file", scratch_ / "wrong", "/private/lock", "--", "env"});
    EXPECT_EQ(outcome.code, 77);
    EXPECT_THAT(outcome.err, HasSubstr("the servers refused the credentials: check --sasl-user"));
    EXPECT_THAT(outcome.err, Not(HasSubstr("wrong word")));
    outcome = zklock::test::zklock({"--connect", sasl.connect_string(), "/private/lock", "--", "true"});
    EXPECT_EQ(outcome.code, 77);
    EXPECT_THAT(outcome.err, HasSubstr("access list"));
}

/// examples/stunnel.conf with one server, whose certificate must be for this host.
class Stunnel {
public:
    Stunnel(const std::string& directory, std::uint16_t port, const testenv::Endpoint& server,
            const std::string& host) {
        std::ifstream example(ZKRECIPES_STUNNEL_EXAMPLE);
        std::ostringstream text;
        text << example.rdbuf();
        std::string config = text.str();
        config.erase(config.find("[zk2]"));
        const auto replace = [&](const std::string& from, const std::string& to) {
            EXPECT_THAT(config, HasSubstr(from));
            config = std::regex_replace(config, std::regex(from), to);
        };
        replace("/etc/zookeeper-client", certificates());
        replace("127.0.0.1:21811", "127.0.0.1:" + std::to_string(port));
        replace("zk1.example.org:2281", server.str());
        replace("checkHost = zk1.example.org", "checkHost = " + host);
        const std::string file = directory + "/stunnel.conf";
        std::ofstream(file) << config;
        const pid_t test = ::getpid();
        pid_ = ::fork();
        if (pid_ != 0) return;
        die_with(test);
        const int log = ::open((directory + "/stunnel.log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ::dup2(log, STDOUT_FILENO);
        ::dup2(log, STDERR_FILENO);
        ::execl("/usr/bin/stunnel4", "stunnel4", file.c_str(), nullptr);
        ::_exit(98);
    }
    ~Stunnel() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Stunnel(const Stunnel&) = delete;
    Stunnel& operator=(const Stunnel&) = delete;

private:
    pid_t pid_ = -1;
};

std::uint16_t free_port() {
    const Recorder recorder(Recorder::black_hole());
    const std::string text = recorder.connect_string();
    return static_cast<std::uint16_t>(std::stoi(text.substr(text.find(':') + 1)));
}

TEST(StunnelTest, TheRecipeEncryptsTheConnectionOfAClientWithoutTls) {
    ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER();
    if (certificates().empty()) GTEST_SKIP() << "openssl cannot make certificates here";
    if (::access("/usr/bin/stunnel4", X_OK) != 0) GTEST_SKIP() << "stunnel is not installed (Debian package stunnel4)";
    testenv::ZkServer server(tls_server(certificates()));
    Recorder recorder({server.endpoint().address, kTlsPort});
    const std::string target = recorder.connect_string();
    const testenv::Endpoint endpoint{"127.0.0.1", static_cast<std::uint16_t>(std::stoi(target.substr(10)))};
    const testenv::Scratch scratch;
    {
        const std::uint16_t port = free_port();
        const Stunnel stunnel(scratch.path(), port, endpoint, "localhost");
        Session session(session_options("127.0.0.1:" + std::to_string(port), 20s));
        ASSERT_TRUE(session.wait_connected(kMaxWait));
        ExclusiveMutex mutex(session, unlikely_path() + "/lock");
        for (int i = 0; i < 20; ++i) {
            const Grant grant = mutex.acquire();
            EXPECT_TRUE(grant.held());
        }
    }
    EXPECT_GE(recorder.streams().size(), 1U);
    expect_encrypted(recorder);

    // Unlike the C client, stunnel checks the name of the host.
    const std::size_t before = recorder.streams().size();
    const std::uint16_t port = free_port();
    const Stunnel stunnel(scratch.path(), port, endpoint, "zk9.example.org");
    Session session(session_options("127.0.0.1:" + std::to_string(port), 4s));
    EXPECT_TRUE(await([&] { return recorder.streams().size() > before + 1; }));
    EXPECT_FALSE(session.wait_connected(Deadline(100ms)));
    expect_encrypted(recorder);
}

}  // namespace
}  // namespace zkrecipes::test
