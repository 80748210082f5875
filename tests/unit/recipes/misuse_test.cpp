// What a program does wrong, or too late, is told by an Error, and never changes what another call promises.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/persistent_node.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/shared_value.hpp>
#include <zkrecipes/transaction.hpp>

#include <optional>
#include <utility>

#include "support/session_fixture.hpp"

namespace zkrecipes::testing {
namespace {

class MisuseTest : public SessionTest {
protected:
    ~MisuseTest() override {
        if (session) runtime->while_running([this] { session.reset(); });
    }
    void connect() {
        open_connected();
        session.emplace(SessionAccess::make(core));
    }
    /// The Error of the call; ok: it threw none.
    template <class Call>
    static Error error_of(Call call) {
        try {
            call();
        } catch (const Error& error) {
            return error;
        }
        return {Errc{}, "ok", ""};
    }
    template <class Call>
    static Errc code_of(Call call) {
        return error_of(call).errc();
    }

    std::optional<Session> session;
};

const char* const kHold = "zkr1r:7:x/locks/a/_c_00000000-0000-4000-8000-000000000001-lock-0000000007";

TEST_F(MisuseTest, ASequencerThatWasMovedFromGuardsNothingAndIsRefused) {
    connect();
    auto from = Sequencer::parse(kHold);
    const auto to = std::move(from);
    EXPECT_EQ(code_of([&] { Transaction(*session, from).set("/a", "unguarded"); }), Errc::lock_lost);
    Transaction guarded(*session, to);
    EXPECT_EQ(code_of([&] { guarded.require(from); }), Errc::lock_lost);
}

TEST_F(MisuseTest, ASequencerThatWasMovedFromIsNoHoldToAskFor) {
    connect();
    auto from = Sequencer::parse(kHold);
    const auto to = std::move(from);
    EXPECT_EQ(to.directory(), "/locks/a");
    EXPECT_EQ(code_of([&] { from.directory(); }), Errc::lock_lost);
    EXPECT_EQ(code_of([&] { still_held(*session, from, Deadline::never()); }), Errc::lock_lost);
    EXPECT_EQ(code_of([&] { (void)release_held(*session, from, Deadline::never()); }), Errc::lock_lost);
    EXPECT_TRUE(client().sent.empty());
}

TEST_F(MisuseTest, WhereCredentialsWereRefusedEveryCallSaysSo) {
    options.auth.push_back({"digest", "u:p"});
    connect();
    ExclusiveMutex mutex(*session, "/l");
    SharedValue value(*session, "/v", "");
    Transaction write(*session, Sequencer::parse(kHold));
    write.set("/a", "b");
    client().answer_auth(Rc::auth_failed);
    runtime->run();
    const auto never = [](auto&&...) { FAIL(); };
    EXPECT_EQ(code_of([&] { mutex.acquire_async({}, {}, never); }), Errc::auth_failed);
    EXPECT_EQ(code_of([&] { value.set_async("c", {}, {}, never); }), Errc::auth_failed);
    EXPECT_EQ(code_of([&] { (void)value.get(); }), Errc::auth_failed);
    EXPECT_EQ(code_of([&] { (void)value.observe(never); }), Errc::auth_failed);
    EXPECT_EQ(code_of([&] { write.commit_async({}, {}, never); }), Errc::auth_failed);
    EXPECT_EQ(code_of([&] { PersistentNode(*session, "/n"); }), Errc::auth_failed);
}

TEST_F(MisuseTest, ASessionThatWasMovedFromIsClosedToEveryRecipe) {
    connect();
    Session to = std::move(*session);
    EXPECT_EQ(code_of([&] { ExclusiveMutex(*session, "/l"); }), Errc::closed);
    EXPECT_EQ(code_of([&] { SharedValue(*session, "/v", ""); }), Errc::closed);
    EXPECT_EQ(code_of([&] { inspect_lock(*session, "/l", Deadline::never()); }), Errc::closed);
    runtime->while_running([&] { to.close(); });
}

}  // namespace
}  // namespace zkrecipes::testing
