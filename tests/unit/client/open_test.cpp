#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <map>
#include <mutex>
#include <sstream>

#include <zkrecipes/error.hpp>

#include "client/client.hpp"
#include "client/resolver.hpp"
#include "support/await.hpp"
#include "support/host_names.hpp"
#include "support/refusals.hpp"
#include "support/scripted_server.hpp"

namespace zkrecipes::internal {
namespace {

using test::host_names;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class NobodyListens final : public ClientEvents {
public:
    void on_status(const ClientStatus&) override {}
    void on_watch(WatchEventType, const std::string&) override {}
    void on_auth(Rc) override {}
};

class ClientOpenTest : public testing::Test {
protected:
    std::shared_ptr<Client> open(std::vector<std::string> hosts) {
        ClientOptions options;
        options.hosts = std::move(hosts);
        options.logger =
            std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_));
        return make_zk_client_factory(runtime_)->open(options, std::make_shared<NobodyListens>());
    }
    std::ostringstream log_;
    const std::shared_ptr<Runtime> runtime_ = make_thread_runtime();
};

TEST_F(ClientOpenTest, AddressesThatThisMachineCannotUseAreNamed) {
    try {
        open({"[fe80::1%no-such-link]:2181"});
        FAIL() << "opened";
    } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::bad_connect_string);
        EXPECT_THAT(error.what(), HasSubstr("fe80::1%no-such-link"));
    }
}

TEST_F(ClientOpenTest, WithoutDescriptorsTheLimitOfFilesIsNamedAndNoOther) {
    try {
        const test::NoDescriptors refused;
        open({"127.0.0.1:1"});
        FAIL() << "opened";
    } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::out_of_resources);
        EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("ulimit -n"), testing::Not(HasSubstr("ulimit -u"))));
    }
}

TEST_F(ClientOpenTest, OneAmongSeveralThatCannotBeUsedIsLogged) {
    open({"127.0.0.1:1", "[fe80::1%no-such-link]:2181"});
    runtime_->stop();  // after the handle has been closed
    EXPECT_THAT(log_.str(), HasSubstr("fe80::1%no-such-link"));
}

// ---- names ----------------------------------------------------------------------------------------------------------

/// Real lanes; its timers run when the test says so.
class TimersOnDemand final : public Runtime {
public:
    Instant now() const noexcept override { return real_->now(); }
    Deadline::TimePoint steady_now() const noexcept override { return real_->steady_now(); }
    std::chrono::system_clock::time_point wall_now() const noexcept override { return real_->wall_now(); }
    std::uint64_t random() noexcept override { return real_->random(); }
    TimerId at(Instant, std::function<void()> work) override {
        const std::lock_guard lock(mutex_);
        timers_.emplace(++last_, std::move(work));
        return last_;
    }
    bool cancel(TimerId timer) noexcept override {
        const std::lock_guard lock(mutex_);
        return timers_.erase(timer) != 0;
    }
    void post(Lane lane, std::function<void()> work) override { real_->post(lane, std::move(work)); }
    void stop() noexcept override { real_->stop(); }

    std::size_t timers() const {
        const std::lock_guard lock(mutex_);
        return timers_.size();
    }
    void fire() {
        std::map<TimerId, std::function<void()>> due;
        {
            const std::lock_guard lock(mutex_);
            due.swap(timers_);
        }
        for (const auto& [id, work] : due) post(Lane::protocol, work);
    }

private:
    const std::shared_ptr<Runtime> real_ = make_thread_runtime();
    mutable std::mutex mutex_;  // guards what follows
    TimerId last_ = 0;
    std::map<TimerId, std::function<void()>> timers_;
};

class ClientLookupTest : public testing::Test {
protected:
    ~ClientLookupTest() override {
        client_.reset();
        runtime_->stop();
    }
    void open(const std::string& host) {
        ClientOptions options;
        options.hosts = {host};
        options.logger = std::make_shared<spdlog::logger>("silent");
        client_ = make_zk_client_factory(runtime_)->open(options, std::make_shared<NobodyListens>());
    }
    bool sets_a_timer() {
        return test::await([this] { return runtime_->timers() == 1; });
    }
    bool becomes(ClientState state) {
        return test::await([&] { return client_->status().state == state; });
    }
    test::ScriptedServer server_;
    const std::shared_ptr<TimersOnDemand> runtime_ = std::make_shared<TimersOnDemand>();
    std::shared_ptr<Client> client_;
};

TEST_F(ClientLookupTest, ANameThatNobodyKnowsYetIsLookedUpAgainAndAgain) {
    host_names().set("later.test", {});
    open("later.test:" + server_.port());
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(sets_a_timer());
        runtime_->fire();
    }
    ASSERT_TRUE(sets_a_timer());
    host_names().set("later.test", {"127.0.0.1"});
    runtime_->fire();
    ASSERT_TRUE(becomes(ClientState::connected));
    EXPECT_EQ(client_->status().server, server_.host());
    EXPECT_EQ(runtime_->timers(), 0U);
}

TEST_F(ClientLookupTest, ANameThatMovesIsFollowedWhileNoServerAnswers) {
    host_names().set("moves.test", {"127.0.0.1"});
    open("moves.test:" + server_.port());
    ASSERT_TRUE(becomes(ClientState::connected));
    server_.refuse();
    server_.cut();
    ASSERT_TRUE(sets_a_timer());
    host_names().set("moves.test", {"127.0.0.2"});
    runtime_->fire();
    ASSERT_TRUE(sets_a_timer());
    host_names().set("moves.test", {"127.0.0.1"});
    runtime_->fire();
    ASSERT_TRUE(sets_a_timer());
    server_.refuse(false);
    ASSERT_TRUE(becomes(ClientState::connected));
    EXPECT_EQ(runtime_->timers(), 0U) << "one that is connected needs no name";
}

TEST_F(ClientLookupTest, AHandleThatIsClosedLooksUpNothingAnyMore) {
    host_names().set("never.test", {});
    open("never.test:1");
    ASSERT_TRUE(sets_a_timer());
    client_->close([] {});
    EXPECT_EQ(runtime_->timers(), 0U);
}

/// The C client refuses an address that this machine could reach only by loopback.
TEST(ForCClientTest, AnIpv4AddressThatItRefusesIsWrittenAsIpv6) {
    host_names().set("10.1.2.3", {});
    host_names().set("::ffff:10.1.2.3", {"127.0.0.1"});
    EXPECT_THAT(for_c_client({"10.1.2.3:2181"}), ElementsAre("[::ffff:10.1.2.3]:2181"));
    host_names().set("10.1.2.3", {"127.0.0.1"});
    EXPECT_THAT(for_c_client({"10.1.2.3:2181"}), ElementsAre("10.1.2.3:2181"));
}

TEST(ForCClientTest, AnIpv6AddressThatItRefusesIsLeftOut) {
    host_names().set("2001:db8::1", {});
    EXPECT_THAT(for_c_client({"[2001:db8::1]:2181"}), IsEmpty());
    host_names().set("2001:db8::1", {"127.0.0.1"});
    EXPECT_THAT(for_c_client({"[2001:db8::1]:2181"}), ElementsAre("[2001:db8::1]:2181"));
}

}  // namespace
}  // namespace zkrecipes::internal
