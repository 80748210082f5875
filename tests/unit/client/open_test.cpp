#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include <zkrecipes/error.hpp>

#include "client/client.hpp"

namespace zkrecipes::internal {
namespace {

using testing::HasSubstr;

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

TEST_F(ClientOpenTest, OneAmongSeveralThatCannotBeUsedIsLogged) {
    open({"127.0.0.1:1", "[fe80::1%no-such-link]:2181"});
    runtime_->stop();  // after the handle has been closed
    EXPECT_THAT(log_.str(), HasSubstr("fe80::1%no-such-link"));
}

}  // namespace
}  // namespace zkrecipes::internal
