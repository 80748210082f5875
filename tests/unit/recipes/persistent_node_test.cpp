// PersistentNode on scripted handles: what its blocking calls answer.
#include <zkrecipes/persistent_node.hpp>

#include <boost/fiber/all.hpp>

#include <optional>

#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;

class PersistentNodeUnitTest : public SessionTest {
protected:
    void connect() {
        open_connected();
        session.emplace(SessionAccess::make(core));
    }
    ~PersistentNodeUnitTest() override {
        if (session) runtime->while_running([this] { session.reset(); });
    }
    std::optional<Session> session;
};

TEST_F(PersistentNodeUnitTest, AWaitThatHasTimedOutIsNotAnsweredAgain) {
    connect();
    PersistentNode node(*session, "/n");
    std::optional<bool> present;
    boost::fibers::fiber waiting(boost::fibers::launch::dispatch, [&] {
        EXPECT_NO_THROW(present = node.wait_present(Deadline(runtime->steady_now() + 1s)));
    });
    runtime->advance(1s);  // its deadline has passed, but its fiber does not run yet
    EXPECT_FALSE(present);
    node.close();
    runtime->run();
    waiting.join();
    EXPECT_EQ(present, false);
}

}  // namespace
}  // namespace zkrecipes::testing
