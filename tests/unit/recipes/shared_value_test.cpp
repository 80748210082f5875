// SharedValue on scripted handles: a new session may be with a server that is behind the one before.
#include <zkrecipes/shared_value.hpp>

#include <boost/fiber/all.hpp>

#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

class SharedValueUnitTest : public SessionTest {
protected:
    ~SharedValueUnitTest() override {
        if (session) runtime->while_running([this] { session.reset(); });
    }
    /// What a server that knows this version of the value answers.
    void answer(const Request& request, const std::string& data, std::int32_t version) {
        ASSERT_TRUE(request.answer);
        Reply reply;
        reply.text = data;
        reply.stat.czxid = 1;
        reply.stat.mzxid = reply.stat.version = version;
        reply.results.resize(request.ops.size());
        for (auto& result : reply.results) result.stat.version = version;
        request.answer(reply);
        runtime->run();
    }
    void answer_all(const std::string& data, std::int32_t version) {
        for (int i = 0; i < 20; ++i) {
            boost::this_fiber::yield();
            runtime->run();
            const Request request = client().take();
            if (request.answer) answer(request, data, version);
        }
    }
    void next_session(std::int64_t id) {
        client().expire();
        runtime->run();
        client().connect(id);
        runtime->run();
    }

    std::optional<Session> session;
};

TEST_F(SharedValueUnitTest, AServerThatIsBehindTellsNothingOlderThanWhatWasWrittenBefore) {
    open_connected();
    session.emplace(SessionAccess::make(core));
    SharedValue value(*session, "/value", "seed");
    boost::fibers::fiber writing(boost::fibers::launch::dispatch, [&] { value.set("new"); });
    answer_all("", 5);
    writing.join();
    next_session(0x200);

    std::vector<VersionedValue> seen;
    const auto look = [&] { seen.push_back(value.get()); };
    boost::fibers::fiber first(boost::fibers::launch::dispatch, look);
    runtime->run();
    const Request watch = client().take("get");
    EXPECT_TRUE(watch.watch);
    answer(watch, "old", 4);
    boost::fibers::fiber second(boost::fibers::launch::dispatch, look);
    boost::this_fiber::yield();
    EXPECT_TRUE(seen.empty()) << "the watch alone is not believed";
    const Request sync = client().take();
    EXPECT_EQ(sync.op, "sync");
    answer(sync, "", 0);
    answer_all("new", 5);
    first.join();
    second.join();
    EXPECT_EQ(seen, std::vector<VersionedValue>(2, VersionedValue{"new", 5}));
    look();  // asks nobody
    EXPECT_EQ(seen.back(), (VersionedValue{"new", 5}));
    EXPECT_FALSE(client().take().answer);
}

TEST_F(SharedValueUnitTest, WithoutAConnectionItIsWhatWasKnownLast) {
    open_connected();
    session.emplace(SessionAccess::make(core));
    SharedValue value(*session, "/value", "seed");
    boost::fibers::fiber looking(boost::fibers::launch::dispatch, [&] { value.get(); });
    answer_all("known", 3);
    looking.join();
    client().expire();
    runtime->run();
    EXPECT_EQ(value.get(), (VersionedValue{"known", 3}));
}

}  // namespace
}  // namespace zkrecipes::testing
