// Group and GroupMember before a small server.
#include <zkrecipes/group_member.hpp>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class GroupUnitTest : public ServedTest {
protected:
    GroupUnitTest() { connect(); }
};

TEST_F(GroupUnitTest, AMemberIsANodeWithItsPayloadUntilItLeaves) {
    for (const char* id : {"", "a/b"}) {
        EXPECT_EQ(code_of([&] { GroupMember(*session, "/g", id); }), Errc::bad_option) << id;
    }
    GroupMemberOptions guarded;
    guarded.acl.emplace();
    EXPECT_EQ(code_of([&] { GroupMember(*session, "/g", "ann", "", guarded); }), Errc::bad_option);
    EXPECT_THAT(client().sent, IsEmpty());
    guarded.acl->emplace_back().id = "some";
    GroupMember ann(*session, "/g", "ann", "one", guarded);
    EXPECT_EQ(served([&] { EXPECT_TRUE(ann.wait_joined()); }), "ok");
    EXPECT_EQ(nodes["/g/ann"].data, "one");
    EXPECT_EQ(nodes["/g/ann"].acl.front().id, "some");
    EXPECT_EQ(nodes["/g/ann"].owner, owner);
    EXPECT_EQ(ann.state(), PersistentNodeState::present);
    ann.set_payload("two");
    serve();
    EXPECT_EQ(nodes["/g/ann"].data, "two");
    EXPECT_EQ(ann.payload(), "two");
    GroupMembers members;
    EXPECT_EQ(served([&] { members = ann.members(); }), "ok");
    EXPECT_EQ(members, (GroupMembers{{"ann", "two"}}));
    {
        GroupMember bob(*session, "/g", "bob");
        serve();
        EXPECT_THAT(children("/g"), ElementsAre("ann", "bob"));
        bob = GroupMember(*session, "/g", "eve");
        serve();
        EXPECT_THAT(children("/g"), ElementsAre("ann", "eve")) << "what is assigned to leaves";
        auto& same = bob;
        bob = std::move(same);
        EXPECT_EQ(bob.id(), "eve");
    }
    serve();
    EXPECT_THAT(children("/g"), ElementsAre("ann")) << "what is destroyed leaves";
    EXPECT_EQ(served([&] { EXPECT_TRUE(ann.leave_and_wait()); }), "ok");
    EXPECT_THAT(children("/g"), IsEmpty());
    GroupMember dan(*session, "/g", "dan");
    serve();
    bool left = false;
    dan.leave_and_wait_async(Deadline::never(), {}, [&](const Result<bool>& result) { left = result.value; });
    serve();
    EXPECT_TRUE(left);
    EXPECT_THAT(children("/g"), IsEmpty());
    EXPECT_EQ(code_of([&] { ann.set_payload("three"); }), Errc::closed);
    EXPECT_EQ(leftovers(), "");
}

TEST_F(GroupUnitTest, AllMembersAreReadHoweverMany) {
    Group group(*session, "/g");
    GroupMembers members;
    const auto read = [&] {
        EXPECT_EQ(served([&] { members = group.members(); }), "ok");
        return members.size();
    };
    EXPECT_EQ(read(), 0u);
    put("/g");
    EXPECT_EQ(read(), 0u);
    for (int i = 100; i < 300; ++i) put("/g/" + std::to_string(i), "data of " + std::to_string(i));
    ASSERT_EQ(read(), 200u);
    EXPECT_EQ(members["299"], "data of 299");
    refusals = {{"get /g/100", Rc::no_auth}};
    before_answer = [this](const std::string& what) {
        if (what == "get /g/101") erase("/g/101");
    };
    ASSERT_EQ(read(), 199u);
    EXPECT_EQ(members.at("100"), "") << "it is a member all the same";
    EXPECT_FALSE(members.contains("101"));
    refusals = {{"get /g/100", Rc::bad_arguments}};
    EXPECT_NE(code_served([&] { (void)group.members(); }), Errc{});
    refusals = {{"children /g", Rc::no_auth}};
    EXPECT_EQ(code_served([&] { (void)group.members(); }), Errc::no_permission);
    EXPECT_EQ(code_unserved(std::chrono::seconds(2), [&] { (void)group.members(in(std::chrono::seconds(1))); }),
              Errc::unreachable);
}

TEST_F(GroupUnitTest, NeverMoreThanSixtyFourReadsAtOnce) {
    put("/g");
    for (int i = 100; i < 300; ++i) put("/g/" + std::to_string(i));
    Group group(*session, "/g");
    std::size_t most = 0;
    before_answer = [&](const std::string&) { most = std::max(most, client().open.size() + 1); };
    EXPECT_EQ(served([&] { EXPECT_EQ(group.members().size(), 200u); }), "ok");
    EXPECT_EQ(most, 64u);
}

TEST_F(GroupUnitTest, AnObserverIsToldEachChangeOnce) {
    Group group(*session, "/g");
    std::vector<GroupMembers> told;
    auto subscription = group.observe([&](const GroupMembers& members) { told.push_back(members); });
    EXPECT_EQ(code_of([&] { (void)group.observe(nullptr); }), Errc::bad_option);
    serve();
    put("/g");
    serve();
    for (int i = 100; i < 300; ++i) put("/g/" + std::to_string(i), "a");
    serve();
    erase("/g/100");
    serve();
    write("/g/101", "b");
    serve();
    erase("/g/102");
    put("/g/102", "c");
    serve();
    refusals = {{"get /g/new", Rc::no_auth}};
    put("/g/new", "secret");
    serve();
    ASSERT_EQ(told.size(), 7u);
    EXPECT_THAT(told[0], IsEmpty());
    EXPECT_EQ(told[1].size(), 200u);
    EXPECT_EQ(told[2].size(), 199u);
    EXPECT_EQ(told[3].at("101"), "b");
    EXPECT_FALSE(told[4].contains("102"));
    EXPECT_EQ(told[5].at("102"), "c");
    EXPECT_EQ(told[6].at("new"), "");
    break_connection();
    serve();
    EXPECT_EQ(told.size(), 7u);
    subscription.reset();
    EXPECT_EQ(leftovers(), "");
    EXPECT_THAT(watched, IsEmpty()) << "the servers are told, too";
}

TEST_F(GroupUnitTest, AMemberThatIsGoneWithoutAnEventIsWatchedNoMore) {
    for (const char* path : {"/g", "/g/a", "/g/b"}) put(path);
    Group group(*session, "/g");
    std::vector<GroupMembers> told;
    auto subscription = group.observe([&](const GroupMembers& members) { told.push_back(members); });
    serve();
    nodes.erase("/g/a");  // its event is one that an access list hides
    erase("/g/b");
    serve();
    EXPECT_THAT(told.back(), IsEmpty());
    EXPECT_THAT(watched, ElementsAre("children /g"));
}

}  // namespace
}  // namespace zkrecipes::testing
