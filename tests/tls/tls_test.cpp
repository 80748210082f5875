// Sessions with TLS and SASL. Most tests need a C client that has both: scripts/tls builds one, and runs this with it.
#include "tls/tls_fixture.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

namespace zkrecipes::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// 0: this machine has no IPv6.
std::uint16_t free_ipv6_port() {
    const int fd = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 here{};
    here.sin6_family = AF_INET6;
    here.sin6_addr = in6addr_loopback;
    socklen_t size = sizeof here;
    const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&here), size) == 0 &&
                       ::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &size) == 0;
    ::close(fd);
    return bound ? ntohs(here.sin6_port) : 0;
}

TEST_F(TlsTest, LocksWorkAndNothingIsSentInClearAlsoAfterAReconnect) {
    Recorder recorder(tls_endpoint());
    Session session(options_for(recorder.connect_string(), 20s));
    ASSERT_TRUE(session.wait_connected(kMaxWait));
    EXPECT_EQ(session.info().server, recorder.connect_string());
    const std::int64_t id = session.info().session_id;
    ExclusiveMutex mutex(session, unlikely_path() + "/lock");
    for (int round = 0; round < 3; ++round) {
        const Grant grant = mutex.acquire();
        EXPECT_TRUE(grant.held());
        const std::size_t before = recorder.streams().size();
        recorder.cut();
        EXPECT_TRUE(await([&] { return recorder.streams().size() > before; }));
        EXPECT_TRUE(await([&] { return session.state() == SessionState::connected; }));
        EXPECT_TRUE(heartbeats_pass(grant));
        EXPECT_TRUE(grant.held());
    }
    EXPECT_EQ(session.info().session_id, id);
    session.close();
    EXPECT_GE(recorder.streams().size(), 4U);
    expect_encrypted(recorder);
}

TEST_F(TlsTest, AClosedSessionIsOverAtOnce) {
    for (int round = 0; round < 5; ++round) {
        Session session(options_for(tls_endpoint().str(), 60s));
        ASSERT_TRUE(session.wait_connected(kMaxWait));
        ExclusiveMutex mutex(session, "/closed/lock");
        const auto before = Clock::now();
        const Grant grant = mutex.acquire();
        EXPECT_LT(Clock::now() - before, 30s) << "the former session has not ended";
        session.close();  // while it holds the lock
    }
}

TEST_F(TlsTest, TheServersCertificateMustComeFromTheAuthority) {
    Recorder recorder(tls_endpoint());
    SessionOptions options = options_for(recorder.connect_string());
    options.tls->ca_file = certificates() + "/other-ca.pem";
    const std::string wanted = recorder.connect_string() + ": the certificate of the server is not accepted";
    EXPECT_THAT(problem_of(options, wanted), HasSubstr("other-ca.pem"));
    expect_encrypted(recorder);
}

TEST_F(TlsTest, AnAuthorityThatOnlyTheSystemTrustsDoesNotCount) {
    // Where OpenSSL finds the authorities of the system; the C client reads it for each connection.
    ::setenv("SSL_CERT_FILE", (certificates() + "/ca.pem").c_str(), 1);
    SessionOptions options = options_for(tls_endpoint().str());
    options.tls->ca_file = certificates() + "/other-ca.pem";
    problem_of(options, "the certificate of the server is not accepted");
    ::unsetenv("SSL_CERT_FILE");
}

TEST_F(TlsTest, TheNameOfTheServersIsCheckedIfItIsGiven) {
    Recorder recorder(tls_endpoint());
    SessionOptions options = options_for(recorder.connect_string());
    options.tls->server_name = "zk.example.org";
    problem_of(options, "hostname mismatch");
    expect_encrypted(recorder);
    options.tls->server_name = "localhost";
    Session session(options);
    EXPECT_TRUE(session.wait_connected(kMaxWait));
}

TEST_F(TlsTest, AnExpiredCertificateIsNamed) {
    testenv::ZkServer expired(tls_server(certificates(), "expired"));
    Recorder recorder({expired.endpoint().address, kTlsPort});
    problem_of(options_for(recorder.connect_string()), "certificate has expired");
    expect_encrypted(recorder);
}

TEST_F(TlsTest, AnAuthorityWithTooShortAKeyIsNamed) {
    testenv::ZkServer weak(tls_server(certificates(), "weak"));
    SessionOptions options = options_for(testenv::Endpoint{weak.endpoint().address, kTlsPort}.str());
    options.tls->ca_file = certificates() + "/weak-ca.pem";
    problem_of(options, "CA certificate key too weak");
}

TEST_F(TlsTest, AServerMayHaveAnIpv6Address) {
    const std::uint16_t port = free_ipv6_port();
    if (port == 0) GTEST_SKIP() << "no IPv6 here";
    testenv::ServerOptions six = tls_server(certificates());
    six.tls_port = port;
    six.config_lines.push_back("secureClientPortAddress=::1");
    six.java_properties["java.net.preferIPv4Stack"] = "false";
    const testenv::ZkServer owner(six);
    const std::string server = "[::1]:" + std::to_string(port);
    SessionOptions options = options_for(server);
    Session session(options);
    EXPECT_TRUE(session.wait_connected(kMaxWait));
    EXPECT_EQ(session.info().server, server);
    options.tls->ca_file = certificates() + "/other-ca.pem";
    problem_of(options, server + ": the certificate of the server is not accepted");
}

TEST_F(TlsTest, ACertificateThatTheServersDoNotAcceptIsAProblem) {
    Recorder recorder(tls_endpoint());
    SessionOptions options = options_for(recorder.connect_string());
    options.tls = tls_options(certificates(), "other-client");
    options.tls->ca_file = certificates() + "/ca.pem";
    problem_of(options, "certificate");
    expect_encrypted(recorder);
}

TEST_F(TlsTest, ThePlainPortIsNamedAndGetsNothingInClear) {
    Recorder recorder(server().endpoint());
    problem_of(options_for(recorder.connect_string()), "secureClientPort");
    expect_encrypted(recorder);
}

TEST_F(TlsTest, ABlackHoleInTheHandshakeEndsWithinTheDeadline) {
    Recorder hole(Recorder::black_hole());
    problem_of(options_for(hole.connect_string()), "does not answer the TLS handshake");
    EXPECT_GE(hole.streams().size(), 1U);
    expect_encrypted(hole);
}

TEST_F(TlsTest, ClosingDuringTheHandshakeReturns) {
    Recorder hole(Recorder::black_hole());
    for (int round = 0; round < 3; ++round) {
        Session session(options_for(hole.connect_string(), 60s));
        const std::size_t wanted = static_cast<std::size_t>(round) + 1;
        EXPECT_TRUE(await([&] {
            const auto streams = hole.streams();
            return streams.size() == wanted && !streams.back().to_server.empty();
        }));
        const auto before = Clock::now();
        session.close();
        EXPECT_LT(Clock::now() - before, 20s);
        EXPECT_TRUE(await([&] { return hole.open_connections() == 0; }));
    }
}

TEST_F(TlsTest, AServerBehindABlackHoleIsFound) {
    Recorder hole(Recorder::black_hole());
    Session session(options_for(hole.connect_string() + ",127.0.0.1:1," + tls_endpoint().str()));
    EXPECT_TRUE(session.wait_connected(kMaxWait));
    EXPECT_EQ(session.info().server, tls_endpoint().str());
    EXPECT_THAT(session.info().problem, IsEmpty());
}

TEST_F(TlsTest, AnUnreachableServerIsNamed) {
    problem_of(options_for("127.0.0.1:1"), "127.0.0.1:1: Connection refused");
}

TEST_F(TlsTest, ManyRequestsAtOnceAreAnswered) {
    Session session(options_for(tls_endpoint().str(), 20s));
    ASSERT_TRUE(session.wait_connected(kMaxWait));
    std::vector<std::jthread> threads;
    std::atomic<int> done{0};
    for (int i = 0; i < 20; ++i) {
        threads.emplace_back([&, i] {
            ExclusiveMutex mutex(session, "/many/" + std::to_string(i % 5));
            for (int round = 0; round < 20; ++round) {
                const Grant grant = mutex.try_acquire_for(kMaxWait);
                done += grant.held() ? 1 : 0;
            }
        });
    }
    threads.clear();
    EXPECT_EQ(done, 400);
}

TEST_F(TlsTest, NoDescriptorIsLeft) {
    const auto count = [] {
        return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                             std::filesystem::directory_iterator());
    };
    (void)server();
    const auto use = [&] {
        Session good(options_for(tls_endpoint().str()));
        EXPECT_TRUE(good.wait_connected(kMaxWait));
        good.close();
        problem_of(options_for("127.0.0.1:1"), "refused");
    };
    use();
    const auto before = count();
    for (int round = 0; round < 3; ++round) use();
    EXPECT_TRUE(await([&] { return count() <= before; })) << count() << " instead of " << before;
}

TEST_F(TlsTest, TheCertificateOfTheClientCountsInAccessLists) {
    SessionOptions options = options_for(tls_endpoint().str());
    options.acl = Acl::creator_all();
    Session session(options);
    ExclusiveMutex mutex(session, "/certified/lock");
    const Grant grant = mutex.try_acquire_for(kMaxWait);
    EXPECT_TRUE(grant.held());
    Session stranger(session_options(server().connect_string(), 4s));
    ExclusiveMutex same(stranger, "/certified/lock");
    EXPECT_EQ(error_of([&] { (void)same.try_acquire_for(kMaxWait); }).errc(), Errc::no_permission);
}

TEST_F(TlsTest, AKeyOfAnotherCertificateIsRefused) {
    SessionOptions options = options_for("127.0.0.1:1");
    options.tls->key_file = certificates() + "/server-key.pem";
    const Error error = error_of([&] { Session session(options); });
    EXPECT_EQ(error.errc(), Errc::bad_option);
    EXPECT_THAT(error.what(), HasSubstr("server-key.pem"));
}

class SaslTest : public testing::Test {
protected:
    void SetUp() override {
        ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER();
        if (!has_feature("sasl")) GTEST_SKIP() << "this ZooKeeper C client has no SASL; use scripts/tls";
    }
    testenv::Scratch scratch_;
    testenv::ZkServer server_ = testenv::ZkServer(sasl_server(scratch_.path()));
};

TEST_F(SaslTest, TheUserIsKnownToTheServersAlsoAfterAReconnect) {
    Recorder recorder(server_.endpoint());
    SessionOptions options = session_options(recorder.connect_string(), 20s);
    options.sasl = sasl_options();
    options.acl = Acl::creator_all();
    Session session(options);
    ASSERT_TRUE(session.wait_connected(kMaxWait));
    ExclusiveMutex mutex(session, "/private/lock");
    Grant grant = mutex.acquire();
    EXPECT_TRUE(grant.held());
    recorder.cut();
    EXPECT_TRUE(await([&] { return recorder.streams().size() == 2; }));
    EXPECT_TRUE(heartbeats_pass(grant));
    EXPECT_TRUE(grant.release_and_wait(kMaxWait));
    for (const auto& stream : recorder.streams()) EXPECT_EQ(stream.to_server.find("secret word"), std::string::npos);

    Session stranger(session_options(server_.connect_string(), 4s));
    ExclusiveMutex same(stranger, "/private/lock");
    EXPECT_EQ(error_of([&] { (void)same.try_acquire_for(kMaxWait); }).errc(), Errc::no_permission);
}

TEST_F(SaslTest, AWrongPasswordEndsTheSessionWithAReason) {
    SessionOptions options = session_options(server_.connect_string(), 4s);
    options.sasl = sasl_options("wrong word");
    Session session(options);
    const auto before = Clock::now();
    const Error error = error_of([&] { (void)session.wait_connected(kMaxWait); });
    EXPECT_LT(Clock::now() - before, 20s);
    EXPECT_EQ(error.errc(), Errc::auth_failed);
    EXPECT_THAT(error.what(), HasSubstr("sasl"));
    EXPECT_THAT(error.what(), Not(HasSubstr("wrong word")));
}

TEST(ClientWithoutTls, RefusesTheSessionInsteadOfDoingWithout) {
    if (has_feature("tls") || has_feature("sasl")) GTEST_SKIP() << "this ZooKeeper C client has TLS or SASL";
    if (certificates().empty()) GTEST_SKIP() << "openssl cannot make certificates here";
    Recorder recorder(Recorder::black_hole());
    SessionOptions options = session_options(recorder.connect_string());
    options.tls = tls_options(certificates());
    Error error = error_of([&] { Session session(options); });
    EXPECT_EQ(error.errc(), Errc::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("was built without OpenSSL"));
    EXPECT_THAT(error.what(), HasSubstr("-DWITH_OPENSSL=ON"));
    options.tls.reset();
    options.sasl = sasl_options();
    error = error_of([&] { Session session(options); });
    EXPECT_EQ(error.errc(), Errc::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("-DWITH_CYRUS_SASL=ON"));
    EXPECT_THAT(recorder.streams(), IsEmpty());
}

}  // namespace
}  // namespace zkrecipes::test
