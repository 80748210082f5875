// Transaction before a small server: which operation was refused, and what to do about it.
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/transaction.hpp>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {
namespace {

using ::testing::IsEmpty;

class TransactionUnitTest : public ServedTest {
protected:
    TransactionUnitTest() {
        connect();
        put("/a", "old");
        put("/marks");
        ExclusiveMutex mutex(*session, "/l");
        EXPECT_EQ(served([&] { grant = mutex.acquire(); }), "ok");
    }
    ~TransactionUnitTest() override { grant.release(); }
    /// How a commit ends: "ok", or the error and its path.
    std::string committed(Transaction& write) {
        std::string end;
        served([&] {
            try {
                result = write.commit();
                end = "ok";
            } catch (const Error& error) {
                end = std::string(error.code().message()) + " " + error.path();
            }
        });
        return end;
    }
    static std::string refused(Errc code, const std::string& path) {
        return std::string(make_error_code(code).message()) + " " + path;
    }

    Grant grant;
    TransactionResult result;
};

TEST_F(TransactionUnitTest, TheErrorNamesWhatWasRefused) {
    const auto one = [this](auto&& add) {
        Transaction write(grant);
        write.check("/a");
        add(write);
        return committed(write);
    };
    EXPECT_EQ(one([](Transaction& t) { t.create("/a", ""); }), refused(Errc::node_exists, "/a"));
    EXPECT_EQ(one([](Transaction& t) { t.create("/b/c", ""); }), refused(Errc::no_parent, "/b/c"));
    EXPECT_EQ(one([](Transaction& t) { t.set("/b", ""); }), refused(Errc::no_node, "/b"));
    EXPECT_EQ(one([](Transaction& t) { t.set("/a", "", 3); }), refused(Errc::bad_version, "/a"));
    EXPECT_EQ(one([](Transaction& t) { t.remove("/l"); }), refused(Errc::not_empty, "/l"));
    EXPECT_EQ(one([](Transaction& t) { t.check("/b"); }), refused(Errc::no_node, "/b"));
    EXPECT_EQ(one([](Transaction& t) { t.idempotent_in("/none"); }), refused(Errc::no_parent, "/none"));
    EXPECT_EQ(one([](Transaction& t) { t.idempotent_in("/marks").set("/b", ""); }), refused(Errc::no_node, "/b"));
    for (const auto& [rc, code] : std::map<Rc, Errc>{{Rc::no_auth, Errc::no_permission},
                                                     {Rc::quota_exceeded, Errc::quota_exceeded},
                                                     {Rc::no_children_for_ephemerals, Errc::no_parent}}) {
        refusals = {{"multi " + grant.node(), rc}};
        EXPECT_EQ(one([](Transaction& t) { t.set("/a", ""); }), refused(code, "/a"));
    }
    refusals.clear();
    EXPECT_EQ(nodes["/a"].data, "old");
    EXPECT_THAT(children("/marks"), IsEmpty());
    const std::string node = grant.node();
    nodes.erase(node);
    EXPECT_EQ(one([](Transaction& t) { t.set("/a", ""); }), refused(Errc::lock_lost, node));
}

TEST_F(TransactionUnitTest, ARefusalOfTheWholeBlamesNoneOfItsParts) {
    Transaction write(grant);
    write.check("/a").set("/a", "new");
    std::string told;
    write.commit_async(
        {}, {}, [&](const CommitResult& ended) { told = outcome_of([&] { std::rethrow_exception(ended.error); }); });
    runtime->run();
    const Request request = client().take("multi");
    ASSERT_TRUE(request.answer);
    Reply refusal;
    refusal.rc = Rc::no_auth;
    refusal.results.resize(request.ops.size());
    for (auto& each : refusal.results) each.rc = refusal.rc;
    request.answer(refusal);
    serve();
    EXPECT_THAT(told, ::testing::HasSubstr("the transaction was refused; nothing was written"));
}

TEST_F(TransactionUnitTest, WhatCannotWorkIsRefusedWithoutARequest) {
    const auto before = client().sent.size();
    Transaction write(grant);
    EXPECT_EQ(code_of([&] { write.set("/a", "", -2); }), Errc::bad_option);
    EXPECT_EQ(code_of([&] { write.set("a", ""); }), Errc::bad_path);
    EXPECT_EQ(code_of([&] { write.create("/b", "", Transaction::Create::persistent, std::vector<Acl>{}); }),
              Errc::bad_option);
    EXPECT_EQ(code_of([&] { write.require(Grant()); }), Errc::lock_lost);
    EXPECT_EQ(write.size(), 0u);
    write.set("/a", std::string(2'000'000, 'x'));
    EXPECT_EQ(code_of([&] { (void)write.commit(); }), Errc::too_large);
    EXPECT_EQ(code_of([&] { write.commit_async({}, {}, [](CommitResult) {}); }), Errc::too_large);
    EXPECT_EQ(client().sent.size(), before);
}

TEST_F(TransactionUnitTest, TheResultSaysWhatEachOperationMade) {
    std::vector<Acl> some(1);
    some.front().id = "some";
    Transaction write(grant);
    write.create("/n-", "1", Transaction::Create::sequential, some)
        .create("/b", "2")
        .set("/a", "3")
        .check("/a")
        .remove("/b");
    EXPECT_EQ(committed(write), "ok");
    ASSERT_EQ(result.operations.size(), 5u);
    const std::string made = result.operations[0].path;
    EXPECT_EQ(made.size(), std::string("/n-").size() + 10);
    EXPECT_EQ(nodes.at(made).data, "1");
    EXPECT_EQ(nodes.at(made).acl.front().id, "some");
    EXPECT_EQ(result.operations[0].version, 0);
    EXPECT_EQ(result.operations[1].path, "/b");
    EXPECT_EQ(result.operations[2].version, 1);
    EXPECT_EQ(result.operations[3].version, -1);
    EXPECT_EQ(result.operations[4].path, "/b");
    EXPECT_EQ(result.operations[4].version, -1);
    EXPECT_FALSE(result.answer_lost);
    EXPECT_FALSE(nodes.contains("/b"));
}

TEST_F(TransactionUnitTest, ALostAnswerIsUnknownAndWithAMarkItIsFoundOut) {
    for (const bool after : {false, true}) {
        lost_after = after;
        Transaction once(grant);
        once.set("/a", after ? "executed" : "not executed");
        asked.clear();
        lose_answer = 1;
        EXPECT_EQ(committed(once), refused(Errc::outcome_unknown, "/a"));
        EXPECT_EQ(nodes["/a"].data, after ? "executed" : "old");
        Transaction marked(grant);
        const auto version = nodes["/a"].version;
        marked.set("/a", "old").idempotent_in("/marks");
        asked.clear();
        EXPECT_EQ(committed(marked), "ok");
        EXPECT_EQ(result.answer_lost, after);
        EXPECT_EQ(nodes["/a"].version, version + 1);
        EXPECT_THAT(children("/marks"), IsEmpty());
    }
}

}  // namespace
}  // namespace zkrecipes::testing
