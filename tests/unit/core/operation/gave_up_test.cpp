// What a call says that ends without an answer.
#include <zkrecipes/inspect.hpp>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using namespace std::chrono_literals;

class ImpatientTest : public ServedTest {
protected:
    ImpatientTest() {
        options.retry = RetryPolicy::n_times(3, 10ms);
        connect();
    }
};

TEST_F(ImpatientTest, APolicyThatGivesUpSaysWhatTheServersAnswered) {
    put("/l");
    refusals = {{"children /l", Rc::throttled}};
    EXPECT_THAT(served([&] { (void)inspect_lock(*session, "/l", Deadline::never()); }),
                ::testing::HasSubstr("gave up after 3 attempts; the last answer was: throttled"));
    EXPECT_EQ(times("children /l"), 3u);
}

TEST_F(ImpatientTest, AStopIsNotSaidToBeADeadline) {
    client().disconnect();
    runtime->run();
    std::stop_source stop;
    std::string said;
    inspect_lock_async(*session, "/l", false, Deadline::never(), stop.get_token(), [&](const Result<LockView>& result) {
        try {
            std::rethrow_exception(result.error);
        } catch (const Error& error) {
            said = error.what();
        }
    });
    stop.request_stop();
    runtime->run();
    EXPECT_THAT(said, ::testing::HasSubstr("it was stopped before a server answered"));
}

}  // namespace
}  // namespace zkrecipes::testing
