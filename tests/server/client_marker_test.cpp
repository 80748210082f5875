// What a set of locks and a semaphore rely on: a set inside a transaction answers the zxid of the transaction. A node
// that one transaction creates, sets and deletes, a marker, is never seen, and changes nothing but the next number of
// its directory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stop_token>
#include <thread>
#include <zkrecipes/testenv/zk_ensemble.hpp>

#include "support/client_test_handle.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::internal {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

using Ops = std::vector<MultiOp>;

MultiOp node_op(const std::string& path, CreateMode mode, std::vector<Acl> acl = Acl::open()) {
    return {.kind = MultiOp::Kind::create, .path = path, .data = "d", .acl = std::move(acl), .mode = mode};
}
MultiOp set_op(const std::string& path) { return {.kind = MultiOp::Kind::set, .path = path, .data = "set"}; }

/// One node in each directory and the marker in the first: made, set and deleted.
Ops set_of_locks(const std::vector<std::string>& directories, const std::vector<Acl>& acl = Acl::open()) {
    Ops ops;
    for (const auto& directory : directories) {
        ops.push_back(node_op(directory + "/x-lock-", CreateMode::ephemeral_sequential, acl));
    }
    const std::string marker = directories.front() + "/x-marker";
    ops.push_back(node_op(marker, CreateMode::ephemeral, acl));
    ops.push_back(set_op(marker));
    ops.push_back({.kind = MultiOp::Kind::remove, .path = marker});
    return ops;
}

/// Runs it, and looks at the directories as `reader` sees them. The paths of the new nodes.
std::vector<std::string> expect_one_zxid(TestHandle& writer, TestHandle& reader,
                                         const std::vector<std::string>& directories) {
    const Answer done = writer.async_multi(set_of_locks(directories)).wait();
    EXPECT_EQ(done.rc, Rc::ok);
    if (done.rc != Rc::ok) return {};
    const NodeStat marker = done.results.at(directories.size() + 1).stat;
    EXPECT_EQ(marker.czxid, marker.mzxid);
    EXPECT_EQ(marker.ephemeral_owner, writer.client->status().session_id);
    EXPECT_EQ(reader.async_sync(directories.front()).wait().rc, Rc::ok);
    std::vector<std::string> nodes;
    for (std::size_t i = 0; i < directories.size(); ++i) {
        nodes.push_back(done.results[i].path);
        EXPECT_EQ(reader.async_exists(nodes[i]).wait().stat.czxid, marker.mzxid);
        const Answer directory = reader.async_children(directories[i]).wait();
        EXPECT_THAT(directory.names, ElementsAre(nodes[i].substr(directories[i].size() + 1)));
        EXPECT_EQ(directory.stat.num_children, 1);
        EXPECT_EQ(directory.stat.pzxid, marker.mzxid);
    }
    return nodes;
}

class ClientMarkerTest : public test::ZkServerTest {
protected:
    void SetUp() override {
        ZkServerTest::SetUp();
        if (IsSkipped()) return;
        handle_ = std::make_unique<TestHandle>(connect_string());
        ASSERT_TRUE(handle_->connected());
        ASSERT_EQ(handle_->async_create(root()).wait().rc, Rc::ok);
        for (const auto& directory : directories()) ASSERT_EQ(h().async_create(directory).wait().rc, Rc::ok);
    }
    TestHandle& h() { return *handle_; }
    std::vector<std::string> directories() const { return {path("a"), path("b"), path("c")}; }
    std::unique_ptr<TestHandle> handle_;
};

TEST_F(ClientMarkerTest, TheSetAnswersTheZxidOfAllNodesAndOnlyTheNextNumberTellsOfTheMarker) {
    EXPECT_TRUE(h().async_children(path("a"), true).wait().names.empty());
    const auto nodes = expect_one_zxid(h(), h(), directories());
    ASSERT_THAT(nodes, SizeIs(3));
    for (const auto& node : nodes) EXPECT_TRUE(node.ends_with("-lock-0000000000")) << node;
    // Clients are shown creates plus deletes.
    EXPECT_EQ(h().async_exists(path("a")).wait().stat.cversion, 3);
    EXPECT_EQ(h().async_exists(path("b")).wait().stat.cversion, 1);
    EXPECT_THAT(h().events->watches(), ElementsAre(std::pair(WatchEventType::children_changed, path("a"))));
    const auto next = [&](const std::string& name) {
        return h().async_create(path(name), "", CreateMode::ephemeral_sequential).wait().text;
    };
    EXPECT_EQ(next("a/n-"), path("a/n-0000000002"));
    EXPECT_EQ(next("b/n-"), path("b/n-0000000001"));
    if (!uses_outside_ensemble()) {
        EXPECT_THAT(server().four_letter("dump"), Not(HasSubstr("marker")));
    }
}

TEST_F(ClientMarkerTest, ALeaseThatIsCreatedAndSetAnswersItsCzxidAndOwner) {
    const Answer done =
        h().async_multi({node_op(path("a/lease"), CreateMode::ephemeral), set_op(path("a/lease"))}).wait();
    ASSERT_EQ(done.rc, Rc::ok);
    const Answer lease = h().async_get(path("a/lease")).wait();
    EXPECT_EQ(lease.text, "set");
    EXPECT_EQ(done.results[1].stat.czxid, lease.stat.czxid);
    EXPECT_EQ(done.results[1].stat.ephemeral_owner, lease.stat.ephemeral_owner);
    EXPECT_EQ(h().async_exists(path("a")).wait().stat.pzxid, lease.stat.czxid);
}

TEST_F(ClientMarkerTest, NobodySeesTheMarker) {
    TestHandle reader(connect_string());
    ASSERT_TRUE(reader.connected());
    std::atomic<std::size_t> lists{0};
    std::jthread looking([&](const std::stop_token& over) {
        while (!over.stop_requested()) {
            const Answer seen = reader.async_children(path("a")).wait();
            EXPECT_THAT(seen.names, Each(HasSubstr("-lock-")));
            EXPECT_LE(seen.stat.num_children, 1);
            ++lists;
        }
    });
    for (int i = 0; i < 300 || lists < 300; ++i) {
        const Answer done = h().async_multi(set_of_locks({path("a")})).wait();
        ASSERT_EQ(done.rc, Rc::ok);
        ASSERT_EQ(h().async_remove(done.results[0].path).wait().rc, Rc::ok);
    }
}

TEST_F(ClientMarkerTest, ATransactionThatIsRefusedLeavesNoMarker) {
    auto ops = set_of_locks(directories());
    ops.push_back({.kind = MultiOp::Kind::check, .path = path("b"), .version = 5});
    EXPECT_EQ(h().async_multi(ops).wait().rc, Rc::bad_version);
    for (const auto& directory : directories()) EXPECT_THAT(h().async_children(directory).wait().names, IsEmpty());
    // Who may create, and may neither write nor delete, is refused at the marker, and not before.
    std::vector<Acl> read_only = Acl::open();
    read_only[0].permissions = Acl::read;
    const Answer refused = h().async_multi(set_of_locks(directories(), read_only)).wait();
    EXPECT_EQ(refused.rc, Rc::no_auth);
    EXPECT_EQ(refused.results[3].rc, Rc::ok);
    EXPECT_EQ(refused.results[4].rc, Rc::no_auth);
    std::vector<Acl> no_delete = Acl::open();
    no_delete[0].permissions = Acl::read | Acl::create;
    ASSERT_EQ(h().async_create(path("d"), "", CreateMode::persistent, no_delete).wait().rc, Rc::ok);
    const Answer kept = h().async_multi(set_of_locks({path("d")})).wait();
    EXPECT_EQ(kept.rc, Rc::no_auth);
    EXPECT_EQ(kept.results[2].rc, Rc::ok);
    EXPECT_EQ(kept.results[3].rc, Rc::no_auth);
    EXPECT_THAT(h().async_children(path("d")).wait().names, IsEmpty());
}

TEST_F(ClientMarkerTest, ARestartedServerShowsTheSame) {
    testenv::ZkServer own;
    TestHandle writer(own.connect_string());
    ASSERT_TRUE(writer.connected());
    const std::vector<std::string> all{"/a", "/b"};
    for (const auto& directory : all) ASSERT_EQ(writer.async_create(directory).wait().rc, Rc::ok);
    const auto nodes = expect_one_zxid(writer, writer, all);
    ASSERT_THAT(nodes, SizeIs(2));
    const Answer before = writer.async_children("/a").wait();
    own.restart();  // it reads its log
    ASSERT_TRUE(writer.connected());
    Answer after;
    ASSERT_TRUE(test::await([&] {
        after = writer.async_children("/a").wait();
        return after.rc == Rc::ok;
    }));
    EXPECT_EQ(after.names, before.names);
    EXPECT_EQ(after.stat.pzxid, before.stat.pzxid);
    EXPECT_EQ(after.stat.cversion, before.stat.cversion);
    writer.close();
    TestHandle reader(own.connect_string());
    ASSERT_TRUE(reader.connected());
    for (const auto& directory : all) EXPECT_THAT(reader.async_children(directory).wait().names, IsEmpty());
}

TEST(ClientMarkerEnsembleTest, EveryMemberAnswersAndShowsTheSame) {
    ZKRECIPES_SKIP_WITHOUT_ZOOKEEPER();
    testenv::EnsembleOptions options;
    options.server.sync_limit = 200;  // 20 s: in a stall of the machine the members stay together
    testenv::ZkEnsemble ensemble(options);
    std::vector<std::unique_ptr<TestHandle>> handles;
    for (int i = 0; i < 3; ++i) handles.push_back(std::make_unique<TestHandle>(ensemble.connect_string(i)));
    for (const auto& handle : handles) ASSERT_TRUE(handle->connected());
    const std::vector<std::string> all{"/a", "/b", "/c", "/d"};
    for (const auto& directory : all) ASSERT_EQ(handles[0]->async_create(directory).wait().rc, Rc::ok);
    for (const auto& writer : handles) {
        for (const auto& reader : handles) {
            for (const auto& node : expect_one_zxid(*writer, *reader, all)) {
                EXPECT_EQ(writer->async_remove(node).wait().rc, Rc::ok);
            }
        }
    }
}

}  // namespace
}  // namespace zkrecipes::internal
