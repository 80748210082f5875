// Looking at locks from outside, before a small server.
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/semaphore.hpp>

#include "session/lease/hold.hpp"
#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

/// A node name of Curator's, by its number.
std::string lock_node(const std::string& base, int number) {
    const std::string digits = std::to_string(number);
    const std::string filled = std::string(10 - digits.size(), '0') + digits;
    return "_c_00000000-0000-4000-8000-00" + filled + "-" + base + filled;
}

class InspectTest : public ServedTest {
protected:
    InspectTest() { connect(); }

    /// Holders with a star, in the order of the answer.
    static std::vector<std::string> shown(const LockView& view) {
        std::vector<std::string> out;
        for (const auto& one : view.participants) out.push_back((one.holder ? "*" : "") + one.raw + " " + one.mode);
        return out;
    }
    LockView inspected(const std::string& path, bool up_to_date = false) {
        LockView view;
        EXPECT_EQ(served([&] { view = inspect_lock(*session, path, Deadline::never(), up_to_date); }), "ok");
        return view;
    }
    std::vector<std::string> found(const std::string& prefix, std::vector<std::string>* unreadable = nullptr) {
        std::vector<std::string> out;
        EXPECT_EQ(served([&] {
                      for (const auto& lock : find_locks(*session, prefix, Deadline::never(), unreadable)) {
                          out.push_back(lock.path + (lock.semaphore ? " leases" : ""));
                      }
                  }),
                  "ok");
        return out;
    }
    Participant seen(const std::string& path) {
        Participant one;
        one.path = path;
        one.token = nodes.at(path).czxid;
        one.version = nodes.at(path).version;
        return one;
    }
};

TEST_F(InspectTest, TheNamesInOneDirectoryAreListedByOneRequest) {
    const auto listed = [&](const std::string& path) {
        LockNames names;
        EXPECT_EQ(served([&] { names = list_lock(*session, path, Deadline::never()); }), "ok");
        return names;
    };
    const auto shown = [](const LockNames& names) {
        std::vector<std::string> out;
        for (const auto& one : names.participants) out.push_back((one.holder ? "*" : "") + one.path + " " + one.mode);
        return out;
    };
    EXPECT_FALSE(listed("/l").exists);
    put("/l");
    put("/l/" + lock_node("__WRIT__", 3), "data");
    put("/l/" + lock_node("__READ__", 2), "data");
    put("/l/" + lock_node("__READ__", 1), "data");
    put("/l/deeper");
    put("/s");
    put("/s/leases", "2");
    put("/s/leases/" + lock_node("lease-", 1), "data");
    const auto lock = listed("/l");
    EXPECT_TRUE(lock.exists);
    EXPECT_THAT(shown(lock), ElementsAre("*/l/" + lock_node("__READ__", 1) + " shared",
                                         "*/l/" + lock_node("__READ__", 2) + " shared",
                                         "/l/" + lock_node("__WRIT__", 3) + " exclusive"));
    EXPECT_THAT(lock.others, ElementsAre("/l/deeper"));
    EXPECT_EQ(lock.participants.front().raw, "") << "their data are not read";
    EXPECT_THAT(shown(listed("/s/leases")), ElementsAre("*/s/leases/" + lock_node("lease-", 1) + " semaphore"));
    EXPECT_THAT(listed("/s").others, ElementsAre("/s/leases"));
    EXPECT_THAT(listed("/").others, ::testing::UnorderedElementsAre("/l", "/s"));
}

TEST_F(InspectTest, AQueueInItsOrderWithThoseWhoHold) {
    EXPECT_FALSE(inspected("/l").exists);
    put("/l");
    put("/l/" + lock_node("__READ__", 3), "c");
    put("/l/" + lock_node("__READ__", 1), "a");
    put("/l/" + lock_node("__READ__", 2), "b");
    put("/l/" + lock_node("__WRIT__", 4), "d");
    put("/l/" + lock_node("__READ__", 5), "e");
    put("/l/other", "x");
    auto view = inspected("/l");
    EXPECT_TRUE(view.exists);
    EXPECT_FALSE(view.semaphore);
    EXPECT_THAT(shown(view), ElementsAre("*a shared", "*b shared", "*c shared", "d exclusive", "e shared"));
    EXPECT_EQ(times("sync /l"), 0u);
    inspected("/l", true);
    EXPECT_EQ(times("sync /l"), 1u);

    put("/m");
    put("/m/" + lock_node("__WRIT__", 1), "a");
    put("/m/_d_" + lock_node("__READ__", 1), "b");
    put("/m/" + lock_node("__READ__", 2), "c");
    EXPECT_THAT(shown(inspected("/m")), ElementsAre("*a exclusive", "*b shared", "c shared"))
        << "one owner has both nodes of the same number";
    put("/n");
    put("/n/" + lock_node("lock-", 1), "a");
    put("/n/" + lock_node("lock-", 2), "b");
    EXPECT_THAT(shown(inspected("/n")), ElementsAre("*a exclusive", "b exclusive"));
}

TEST_F(InspectTest, WhatMayNotBeReadIsStillInTheQueueAndWhatIsGoneIsNot) {
    put("/l");
    for (int i = 1; i <= 200; ++i) put("/l/" + lock_node("lock-", i), std::to_string(i));
    refusals = {{"get /l/" + lock_node("lock-", 1), Rc::no_auth}};
    before_answer = [this](const std::string& what) {
        if (what == "get /l/" + lock_node("lock-", 2)) erase("/l/" + lock_node("lock-", 2));
    };
    const auto view = inspected("/l");
    ASSERT_EQ(view.participants.size(), 199u);
    EXPECT_TRUE(view.participants[0].holder);
    EXPECT_EQ(view.participants[0].raw, "");
    EXPECT_FALSE(view.participants[0].readable);
    EXPECT_TRUE(view.participants[1].readable);
    EXPECT_EQ(view.participants[1].raw, "3");
    EXPECT_EQ(view.participants[198].raw, "200");
}

TEST_F(InspectTest, LeasesComeFirstByAgeAndNobodyTwice) {
    for (const char* path : {"/s", "/s/locks", "/s/leases"}) put(path);
    put("/s/leases/" + lock_node("lease-", 2), "second");
    put("/s/leases/" + lock_node("lease-", 1), "third");  // younger than the one before it
    put("/s/locks/" + lock_node("lock-", 1), "third, too");
    put("/s/locks/" + lock_node("lock-", 4), "waits");
    auto view = inspected("/s");
    EXPECT_TRUE(view.semaphore);
    EXPECT_EQ(view.leases, 0);
    EXPECT_THAT(shown(view), ElementsAre("*second semaphore", "*third semaphore", "waits semaphore"));
    write("/s/leases", R"({"v":1,"leases":2})");
    EXPECT_EQ(inspected("/s").leases, 2);
}

TEST_F(InspectTest, ASemaphoreIsToldFromALockWhoseNameIsOneOfItsParts) {
    for (const char* path : {"/s", "/s/leases"}) put(path);
    EXPECT_FALSE(inspected("/s").semaphore) << "a directory of that name proves nothing";
    put("/s/locks");
    EXPECT_TRUE(inspected("/s").semaphore) << "idle";
    EXPECT_THAT(found("/"), IsEmpty());
    put("/s/leases/other");
    EXPECT_FALSE(inspected("/s").semaphore);
    put("/s/leases/lease-7", "a");
    EXPECT_TRUE(inspected("/s").semaphore);
    EXPECT_THAT(found("/"), ElementsAre("/s leases"));
    before_answer = [this](const std::string& what) {
        if (what == "get /s/leases") nodes.erase("/s/leases");
    };
    EXPECT_FALSE(inspected("/s").semaphore) << "has just been removed";
}

TEST_F(InspectTest, KazoosSemaphoreIsKnownByItsNumberOrItsQueue) {
    const std::string lease = "0123456789abcdef0123456789abcdef";
    put("/k", "2");
    EXPECT_EQ(inspected("/k").leases, 2);
    EXPECT_TRUE(inspected("/k").semaphore);
    for (const char* no_number : {"0", "-2", "2x", "x2", "+2"}) {
        nodes["/k"].data = no_number;
        EXPECT_FALSE(inspected("/k").semaphore) << no_number;
    }
    nodes["/k"].data = "";
    put("/k/" + lease, "a");
    EXPECT_FALSE(inspected("/k").semaphore);
    put("/k-__lock__");
    put("/k-__lock__/0123456789abcdef0123456789abcde0__lock__0000000001", "b");
    EXPECT_TRUE(inspected("/k").semaphore);
    EXPECT_THAT(shown(inspected("/k")), ElementsAre("*a semaphore", "b semaphore"));
    EXPECT_THAT(found("/"), ElementsAre("/k leases"));
    before_answer = [this](const std::string& what) {
        if (what == "get /k") nodes.erase("/k");
    };
    EXPECT_FALSE(inspected("/k").semaphore);
}

TEST_F(InspectTest, AllLocksBelowADirectoryAreFound) {
    put("/zookeeper");
    put("/zookeeper/" + lock_node("lock-", 1));
    put("/a");
    for (int i = 100; i < 300; ++i) {
        const std::string directory = "/a/" + std::to_string(i);
        put(directory);
        if (i % 2 == 0) put(directory + "/" + lock_node("lock-", i), "x");
    }
    put("/a/zookeeper");
    put("/a/zookeeper/" + lock_node("lock-", 1));
    for (const char* path : {"/s", "/s/locks", "/s/leases", "/s/empty"}) put(path);
    put("/s/locks/" + lock_node("lock-", 1));
    put("/s/leases/" + lock_node("lease-", 1));
    const auto all = found("/");
    ASSERT_EQ(all.size(), 102u);
    EXPECT_EQ(all[0], "/a/100");
    EXPECT_EQ(all[100], "/a/zookeeper");
    EXPECT_EQ(all[101], "/s leases");
    EXPECT_EQ(found("/a").size(), 101u);
    EXPECT_EQ(times("children /zookeeper"), 0u);
}

TEST_F(InspectTest, ByWhatIsKnownOfThoseWhoWait) {
    put("/a");
    put("/a/" + lock_node("lock-", 1), R"({"v":1,"id":"ann","host":"h","meta":{"team":"red"}})");
    put("/a/" + lock_node("lock-", 2), R"({"v":1,"id":"bob","host":"h","meta":{"team":"blue"}})");
    put("/b");
    put("/b/" + lock_node("lock-", 1), R"({"v":1,"id":"eve","host":"i"})");
    const auto who = [this](const ParticipantFilter& filter) {
        std::string out;
        EXPECT_EQ(served([&] {
                      for (const auto& lock : find_locks(*session, "/", filter, Deadline::never())) {
                          out += lock.path;
                          for (const auto& one : lock.participants) out += " " + one.id;
                          out += "; ";
                      }
                  }),
                  "ok");
        return out;
    };
    ParticipantFilter filter;
    EXPECT_EQ(who(filter), "/a ann bob; /b eve; ");
    filter.host = "h";
    EXPECT_EQ(who(filter), "/a ann bob; ");
    filter.standing = ParticipantFilter::Standing::waiting;
    EXPECT_EQ(who(filter), "/a bob; ");
    filter.standing = ParticipantFilter::Standing::holding;
    EXPECT_EQ(who(filter), "/a ann; ");
    filter.labels = {{"team", "blue"}};
    EXPECT_EQ(who(filter), "");
    filter = {};
    filter.id = "eve";
    EXPECT_EQ(who(filter), "/b eve; ");
    filter.labels = {{"team", ""}};
    EXPECT_EQ(who(filter), "");
}

TEST_F(InspectTest, WhatMayNotBeListedIsNamedOnceAndTheRootMustBeReadable) {
    for (const char* path : {"/z", "/b", "/s", "/s/leases"}) put(path);
    put("/b/" + lock_node("lock-", 1));
    refusals = {{"children /z", Rc::no_auth}, {"get /s/leases", Rc::no_auth}, {"children /s/leases", Rc::no_auth}};
    std::vector<std::string> unreadable;
    EXPECT_THAT(found("/", &unreadable), ElementsAre("/b"));
    EXPECT_THAT(unreadable, ElementsAre("/s", "/s/leases", "/z"));
    refusals = {{"children /b", Rc::no_auth}};
    EXPECT_EQ(code_served([&] { (void)find_locks(*session, "/b", Deadline::never()); }), Errc::no_permission);
    EXPECT_EQ(code_served([&] { (void)inspect_lock(*session, "/b", Deadline::never()); }), Errc::no_permission);
    refusals = {{"get /s/leases", Rc::bad_arguments}};
    EXPECT_NE(code_served([&] { (void)find_locks(*session, "/", Deadline::never()); }), Errc{});
}

TEST_F(InspectTest, AWalkThatBeginsAnewForgetsWhatItMightNotRead) {
    for (const char* path : {"/a", "/b"}) put(path);
    put("/b/" + lock_node("lock-", 1));
    refusals = {{"children /a", Rc::no_auth}};
    lose_answer = static_cast<int>(asked.size()) + 3;
    before_answer = [this](const std::string& what) {
        if (what == "children /b") refusals.clear();  // it may be read now
    };
    std::vector<std::string> unreadable;
    EXPECT_THAT(found("/", &unreadable), ElementsAre("/b"));
    EXPECT_EQ(times("children /a"), 2u);
    EXPECT_THAT(unreadable, IsEmpty());
}

TEST_F(InspectTest, AFreeLockIsWaitedForWhoeverComesInBetween) {
    const auto wait = [this](Deadline deadline) {
        bool free = false;
        EXPECT_EQ(served([&] { free = wait_until_free(*session, "/l", deadline); }), "ok");
        return free;
    };
    EXPECT_TRUE(wait(Deadline::passed()));
    put("/l");
    put("/l/" + lock_node("lock-", 1));
    put("/l/" + lock_node("lock-", 2));
    EXPECT_FALSE(wait(Deadline::passed()));
    EXPECT_THAT(watched, IsEmpty());
    before_answer = [this](const std::string& what) {
        if (what == "get /l/" + lock_node("lock-", 1))
            erase("/l/" + lock_node("lock-", 1));  // between the list and the watch
    };
    std::optional<bool> free;
    boost::fibers::fiber waiting(boost::fibers::launch::dispatch,
                                 [&] { free = wait_until_free(*session, "/l", Deadline::never()); });
    const auto go_on = [&] {
        for (int i = 0; i < 10; ++i) {
            serve();
            boost::this_fiber::yield();
        }
    };
    go_on();
    EXPECT_FALSE(free);
    put("/l/" + lock_node("lock-", 3));
    erase("/l/" + lock_node("lock-", 2));
    go_on();
    EXPECT_FALSE(free);
    write("/l/" + lock_node("lock-", 3), "another text");
    go_on();
    EXPECT_FALSE(free);
    erase("/l/" + lock_node("lock-", 3));
    go_on();
    waiting.join();
    EXPECT_EQ(free, true);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(InspectTest, ASemaphoreIsFreeWhenNobodyHasALease) {
    for (const char* path : {"/s", "/s/locks", "/s/leases"}) put(path);
    put("/s/locks/" + lock_node("lock-", 1));
    EXPECT_EQ(served([&] { EXPECT_TRUE(wait_until_free(*session, "/s", Deadline::passed())); }), "ok");
    put("/s/leases/lease-1");
    EXPECT_EQ(served([&] { EXPECT_FALSE(wait_until_free(*session, "/s", Deadline::passed())); }), "ok");
    std::stop_source stopped;
    stopped.request_stop();
    EXPECT_EQ(served([&] { EXPECT_FALSE(wait_until_free(*session, "/s", {}, stopped.get_token())); }), "ok");
    use_up_watches();
    EXPECT_EQ(code_served([&] { (void)wait_until_free(*session, "/s", Deadline::never()); }), Errc::budget_exceeded);
    allow_watches();
    EXPECT_EQ(leftovers(), "");
}

TEST_F(InspectTest, OnlyTheNodeThatWasSeenIsAskedToGiveWay) {
    put("/l");
    const std::string node = "/l/" + lock_node("lock-", 1);
    put(node, "a");
    const auto asked_for = [this](const Participant& one) {
        bool yes = false;
        EXPECT_EQ(served([&] { yes = request_revocation(*session, one, Deadline::never()); }), "ok");
        return yes;
    };
    auto one = seen(node);
    write(node, "b");
    EXPECT_TRUE(asked_for(one));
    EXPECT_EQ(nodes[node].data, internal::kRevocationRequest);
    --one.token;
    nodes[node].data = "c";
    EXPECT_FALSE(asked_for(one));
    EXPECT_EQ(nodes[node].data, "c");
    one = seen(node);
    refusals = {{"set " + node, Rc::no_node}};
    EXPECT_FALSE(asked_for(one));
    refusals = {{"set " + node, Rc::bad_version}};
    EXPECT_EQ(code_served([&] { (void)request_revocation(*session, one, Deadline::never()); }), Errc::protocol);
    refusals = {{"set " + node, Rc::no_auth}};
    EXPECT_EQ(code_served([&] { (void)request_revocation(*session, one, Deadline::never()); }), Errc::no_permission);
    refusals.clear();
    erase(node);
    EXPECT_FALSE(asked_for(one));
}

TEST_F(InspectTest, OnlyTheNodeThatWasSeenIsRemoved) {
    put("/l");
    const std::string node = "/l/" + lock_node("lock-", 1);
    put(node, "a");
    const auto removed = [this](const Participant& one) {
        bool yes = false;
        EXPECT_EQ(served([&] { yes = remove_participant(*session, one, Deadline::never()); }), "ok");
        return yes;
    };
    const auto refused = [this](const Participant& one) {
        return code_served([&] { (void)remove_participant(*session, one, Deadline::never()); });
    };
    auto one = seen(node);
    --one.token;
    EXPECT_FALSE(removed(one));
    one = seen(node);
    write(node, "b");
    EXPECT_EQ(refused(one), Errc::bad_data);
    before_answer = [&](const std::string& what) {
        if (what == "get " + node) erase(node);
    };
    EXPECT_FALSE(removed(one));
    put(node, "a");
    one = seen(node);
    before_answer = [&](const std::string& what) {
        if (what == "remove " + node) write(node, "c");
    };
    EXPECT_EQ(refused(one), Errc::bad_data);
    before_answer = nullptr;
    EXPECT_TRUE(nodes.contains(node));
    one = seen(node);
    refusals = {{"remove " + node, Rc::not_empty}};
    EXPECT_EQ(refused(one), Errc::not_empty);
    refusals = {{"remove " + node, Rc::no_node}};
    EXPECT_FALSE(removed(one));
    refusals.clear();
    write(node, std::string(internal::kRevocationRequest));
    EXPECT_TRUE(removed(one)) << "who was asked to give way is the same owner";
    EXPECT_FALSE(nodes.contains(node));
    EXPECT_FALSE(removed(one));
}

TEST_F(InspectTest, ANodeThatMayNotBeReadIsKnownByItsName) {
    put("/l");
    const std::string node = "/l/" + lock_node("lock-", 1);
    put(node, "a");
    const Participant before = seen(node);
    refusals = {{"get " + node, Rc::no_auth}, {"exists " + node, Rc::no_auth}};
    const Participant hidden = inspected("/l").participants.at(0);
    ASSERT_FALSE(hidden.readable);
    bool yes = false;
    EXPECT_EQ(served([&] { yes = request_revocation(*session, hidden, Deadline::never()); }), "ok");
    EXPECT_TRUE(yes);
    EXPECT_EQ(nodes[node].data, internal::kRevocationRequest);
    nodes[node].data = "a";
    EXPECT_EQ(served([&] { yes = request_revocation(*session, before, Deadline::never()); }), "ok");
    EXPECT_TRUE(yes) << "read before it was hidden";
    EXPECT_EQ(code_served([&] { (void)remove_participant(*session, before, Deadline::never()); }), Errc::bad_data);
    EXPECT_EQ(served([&] { yes = remove_participant(*session, hidden, Deadline::never()); }), "ok");
    EXPECT_TRUE(yes);
    EXPECT_FALSE(nodes.contains(node));
    EXPECT_EQ(served([&] { yes = remove_participant(*session, hidden, Deadline::never()); }), "ok");
    EXPECT_FALSE(yes);
    put(node, "a");
    const Participant again = seen(node);
    EXPECT_EQ(served([&] { yes = remove_participant(*session, again, Deadline::never()); }), "ok");
    EXPECT_TRUE(yes) << "read before it was hidden";
}

TEST_F(InspectTest, ANameThatALaterNodeMayHaveIdentifiesNone) {
    put("/l");
    for (const std::string name : {"lock-0000000000", "0123456789abcdef0123456789abcdef__lock__0000000000"}) {
        const std::string node = "/l/" + name;
        put(node, "a");
        const Participant before = seen(node);
        refusals = {{"get " + node, Rc::no_auth}, {"exists " + node, Rc::no_auth}};
        for (const Participant& each : {before, inspected("/l").participants.at(0)}) {
            EXPECT_EQ(code_served([&] { (void)remove_participant(*session, each, Deadline::never()); }),
                      Errc::no_permission);
            EXPECT_EQ(code_served([&] { (void)request_revocation(*session, each, Deadline::never()); }),
                      Errc::no_permission);
        }
        EXPECT_EQ(nodes[node].data, "a");
        nodes.erase(node);
    }
}

TEST_F(InspectTest, WhatMayNotBeReadMatchesByStandingOnlyAndIsNamed) {
    put("/l");
    put("/l/" + lock_node("lock-", 1), R"({"v":1,"id":"ann"})");
    put("/l/" + lock_node("lock-", 2), R"({"v":1,"id":"bob"})");
    refusals = {{"get /l/" + lock_node("lock-", 1), Rc::no_auth}};
    ParticipantFilter filter;
    filter.standing = ParticipantFilter::Standing::holding;
    std::vector<LockView> found;
    const auto find = [&] {
        EXPECT_EQ(served([&] { found = find_locks(*session, "/", filter, Deadline::never()); }), "ok");
    };
    find();
    EXPECT_EQ(found.size(), 1u);
    filter.at_least_for = 0ms;
    find();
    EXPECT_THAT(found, IsEmpty()) << "nobody knows its age";
}

TEST_F(InspectTest, OnlyWhatTheFilterMayHaveMeantIsNamedAsUnreadable) {
    put("/l");
    for (int i = 1; i <= 3; ++i) put("/l/" + lock_node("lock-", i), R"({"v":1,"id":"ann"})");
    for (int i = 1; i <= 2; ++i) refusals["get /l/" + lock_node("lock-", i)] = Rc::no_auth;
    std::vector<std::string> unreadable;
    std::size_t matches = 0;
    const auto find = [&](const ParticipantFilter& filter) {
        find_locks_async(*session, "/", filter, Deadline::never(), {}, [&](const Result<FoundLocks>& found) {
            matches = 0;
            for (const auto& lock : found.value.locks) matches += lock.participants.size();
            unreadable = found.value.unreadable;
        });
        serve();
    };
    ParticipantFilter filter;
    find(filter);
    EXPECT_EQ(matches, 3u);
    EXPECT_THAT(unreadable, IsEmpty()) << "it is among the found";
    filter.id = "bob";
    find(filter);
    EXPECT_EQ(matches, 0u);
    EXPECT_THAT(unreadable, ElementsAre("/l/" + lock_node("lock-", 1), "/l/" + lock_node("lock-", 2)));
    filter.standing = ParticipantFilter::Standing::waiting;
    find(filter);
    EXPECT_THAT(unreadable, ElementsAre("/l/" + lock_node("lock-", 2)));
}

}  // namespace
}  // namespace zkrecipes::testing
