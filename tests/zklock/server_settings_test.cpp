// Servers with settings of their own: what works there for a program and for each command of zklock, and what each of
// them says where it does not. docs/operations.md says which settings a service should have.
#include <sys/stat.h>

#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/testenv/zk_ensemble.hpp>

#include "support/error_of.hpp"
#include "support/secure_server.hpp"
#include "zklock/zklock_test.hpp"

namespace zkrecipes::zklock::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using zkrecipes::test::error_of;
using zkrecipes::test::kMaxWait;

/// The servers of a row; destroyed in the opposite order.
struct Place {
    std::string connect;
    std::shared_ptr<testenv::ZkServer> server{};
    std::shared_ptr<testenv::ZkEnsemble> ensemble{};
    std::shared_ptr<std::deque<testenv::ZkServer>> others{};
    std::shared_ptr<testenv::RawClient> guest{};
};

Place one_server(const testenv::ServerOptions& options) {
    auto server = std::make_shared<testenv::ZkServer>(options);
    return {.connect = server->connect_string(), .server = server};
}
Place with_property(const std::string& name, const std::string& value) {
    testenv::ServerOptions options;
    options.java_properties[name] = value;
    return one_server(options);
}
Place with_line(const std::string& line) {
    testenv::ServerOptions options;
    options.config_lines = {line};
    return one_server(options);
}
Place three_servers(const std::vector<std::string>& lines, const std::map<std::string, std::string>& properties = {}) {
    testenv::EnsembleOptions options;
    options.server.config_lines = lines;
    options.server.java_properties = properties;
    auto servers = std::make_shared<testenv::ZkEnsemble>(options);
    servers->wait_quorum();
    return {.connect = servers->connect_string(), .ensemble = servers};
}
Place demanding_digest() {
    testenv::ServerOptions options;
    options.java_properties = {{"zookeeper.enforce.auth.enabled", "true"},
                               {"zookeeper.enforce.auth.schemes", "digest"}};
    return one_server(options);
}

enum class Works { all, reading, nothing };
/// A server without a vote, beside two that have one and that nobody else talks to.
Place an_observer() {
    const auto servers = std::make_shared<std::deque<testenv::ZkServer>>();
    std::vector<std::string> lines;
    for (int id = 1; id <= 3; ++id) {
        testenv::ServerOptions options;
        options.deferred = true;
        if (id == 3) options.config_lines = {"peerType=observer"};
        const testenv::Endpoint at = servers->emplace_back(options).endpoint();
        lines.push_back("server." + std::to_string(id) + "=" + at.address + ":" + std::to_string(at.port + 1) + ":" +
                        std::to_string(at.port + 2) + (id == 3 ? ":observer" : ""));
    }
    for (int id = 1; id <= 3; ++id) (*servers)[static_cast<std::size_t>(id - 1)].set_quorum(id, lines);
    for (testenv::ZkServer& server : *servers) server.launch();
    servers->back().wait_ready();
    return {.connect = servers->back().connect_string(), .others = servers};
}

struct Row {
    const char* name;
    std::function<Place(const Scratch&)> start;
    Works works = Works::all;
    Errc errc{};          // of a program where it does not work
    int code = 0;         // of zklock then
    const char* says{};   // both, then
    bool digest = false;  // both present credentials, and make nodes that only these may change
};

const std::vector<Row> kRows = {
    {"Usual", [](const Scratch&) { return one_server({}); }},
    {"CredentialsDemandedAndPresented", [](const Scratch&) { return demanding_digest(); }, Works::all, {}, 0, "", true},
    {"CredentialsDemanded", [](const Scratch&) { return demanding_digest(); }, Works::nothing, Errc::auth_failed, 77,
     "the servers demand credentials"},
    {"SaslDemanded",
     [](const Scratch& scratch) {
         auto options = zkrecipes::test::sasl_server(scratch.path());
         options.java_properties["zookeeper.sessionRequireClientSASLAuth"] = "true";
         return one_server(options);
     },
     Works::nothing, Errc::auth_failed, 77, "the servers demand credentials"},
    {"LocalSessions", [](const Scratch&) { return three_servers({"localSessionsEnabled=true"}); }, Works::reading,
     Errc::unsupported, 78, "localSessionsUpgradingEnabled=true"},
    {"LocalSessionsThatAreUpgraded",
     [](const Scratch&) {
         return three_servers({"localSessionsEnabled=true", "localSessionsUpgradingEnabled=true"});
     }},
    {"AnotherDigestAlgorithm",
     [](const Scratch&) { return with_property("zookeeper.DigestAuthenticationProvider.digestAlg", "SHA-256"); },
     Works::all,
     {},
     0,
     "",
     true},
    {"SmallRequestsOnly", [](const Scratch&) { return with_property("jute.maxbuffer", "2000"); }},
    {"OneConnectionForAHostWhichIsTaken",
     [](const Scratch&) {
         Place place = with_line("maxClientCnxns=1");
         place.guest = std::make_shared<testenv::RawClient>(place.connect);
         return place;
     },
     Works::nothing, Errc::unreachable, 69, "maxClientCnxns"},
    {"FewFourLetterWords", [](const Scratch&) { return with_line("4lw.commands.whitelist=srvr"); }},
    {"ATimeoutBelowTwoTicksIsAllowed",
     [](const Scratch&) {
         testenv::ServerOptions options;
         options.tick_time = 2s;
         options.min_session_timeout = 500ms;
         return one_server(options);
     }},
    {"OnlyAnObserver", [](const Scratch&) { return an_observer(); }},
    {"ContainersAreNotRemoved",
     [](const Scratch&) { return with_property("znode.container.checkIntervalMs", "2000000000"); }},
    {"ReadOnlyWithoutTheOthers",
     [](const Scratch&) {
         Place place = three_servers({}, {{"readonlymode.enabled", "true"}});
         for (int i = 0; i < 2; ++i) place.ensemble->kill(i);
         return place;
     },
     Works::nothing, Errc::unreachable, 69, "no ZooKeeper server answered"},
};

class ServerSettingsTest : public testing::TestWithParam<Row> {
protected:
    void SetUp() override {
        ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER();
        place_ = GetParam().start(scratch_);
        std::ofstream(scratch_ / "auth") << "digest:user:password\n";
        ::chmod((scratch_ / "auth").c_str(), 0600);
    }
    SessionOptions options() const {
        SessionOptions out{.hosts = place_.connect, .timeout = 10s};
        if (GetParam().digest) out.auth = {{"digest", "user:password"}};
        if (GetParam().digest) out.acl = {{Acl::all, "auth", ""}};
        return out;
    }
    std::vector<std::string> words(std::vector<std::string> command) const {
        std::vector<std::string> added = {"--connect", place_.connect, "--connect-timeout", "6s"};
        if (GetParam().digest) added.insert(added.end(), {"--auth-file", scratch_ / "auth", "--acl", "creator"});
        command.insert(command.begin() + 1, added.begin(), added.end());
        return command;
    }

    const Scratch scratch_;
    Place place_;
};

TEST_P(ServerSettingsTest, AProgramLocksThereOrIsToldWhyNot) {
    Session session(options()), other(options());
    ExclusiveMutex mutex(session, "/l"), others(other, "/l");
    if (GetParam().errc == Errc::unreachable) {
        EXPECT_EQ(mutex.try_acquire_for(1s).missed(), Missed::unreachable);
        return;
    }
    if (GetParam().works != Works::all) {
        const Error error = error_of([&] { (void)mutex.acquire(); });
        EXPECT_EQ(error.errc(), GetParam().errc) << error.what();
        EXPECT_THAT(error.what(), HasSubstr(GetParam().says));
        return;
    }
    Grant held = mutex.try_acquire_for(kMaxWait);
    ASSERT_TRUE(held);
    ASSERT_TRUE(other.wait_connected(kMaxWait));
    EXPECT_EQ(others.try_acquire().missed(), Missed::busy);
    auto waiting = std::async(std::launch::async, [&] { return others.try_acquire_for(kMaxWait); });
    EXPECT_TRUE(await([&] { return inspect_lock(other, "/l", kMaxWait).participants.size() == 2U; }));
    EXPECT_EQ(zklock(words({"break", "--holder", "--yes", "/l"})).code, 0);
    EXPECT_TRUE(await([&] { return !held.held(); })) << "its node is gone";
    EXPECT_TRUE(waiting.get());
}

TEST_P(ServerSettingsTest, EachCommandWorksThereOrSaysWhyNot) {
    struct Command {
        std::vector<std::string> words;
        int code;  // where it works
        bool makes_nodes = false;
    };
    const std::vector<Command> commands = {{{"run", "/a", "true"}, 0, true},
                                           {{"run", "-L", "/b", "-L", "/c:shared", "--", "true"}, 0, true},
                                           {{"run", "-j", "2", "/d", "true"}, 0, true},
                                           {{"hold", "/e"}, 0, true},
                                           {{"elect", "/f", "true"}, 0, true},
                                           {{"status", "/g"}, 0},
                                           {{"ls"}, 0},
                                           {{"top", "--once"}, 0},
                                           {{"leader", "/h"}, 75},
                                           {{"wait", "/i"}, 0},
                                           {{"break", "--all", "--yes", "/k"}, 65},
                                           {{"leases", "/m"}, 65},
                                           {{"ping"}, 0}};
    std::vector<std::unique_ptr<ZklockProcess>> running;
    for (const Command& command : commands) running.push_back(std::make_unique<ZklockProcess>(words(command.words)));
    for (std::size_t i = 0; i < commands.size(); ++i) {
        const bool works =
            GetParam().works == Works::all || (GetParam().works == Works::reading && !commands[i].makes_nodes);
        EXPECT_EQ(running[i]->wait(), works ? commands[i].code : GetParam().code)
            << commands[i].words[0] << ": " << running[i]->err();
        if (!works) {
            EXPECT_THAT(running[i]->err(), HasSubstr(GetParam().says)) << commands[i].words[0];
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Servers, ServerSettingsTest, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace zkrecipes::zklock::test
