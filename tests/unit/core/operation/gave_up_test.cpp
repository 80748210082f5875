// What a call says when the retry policy gives up.
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

}  // namespace
}  // namespace zkrecipes::testing
