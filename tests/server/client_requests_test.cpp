#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <zkrecipes/testenv/gate.hpp>

#include "support/client_test_handle.hpp"
#include "support/zk_server_test.hpp"

namespace zkrecipes::internal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class ClientRequestsTest : public test::ZkServerTest {
protected:
    void SetUp() override {
        ZkServerTest::SetUp();
        if (IsSkipped()) return;
        handle_ = std::make_unique<TestHandle>(connect_string());
        ASSERT_TRUE(handle_->connected());
        ASSERT_EQ(handle_->async_create(root()).wait().rc, Rc::ok);
    }
    TestHandle& h() { return *handle_; }
    std::unique_ptr<TestHandle> handle_;
};

TEST_F(ClientRequestsTest, TheStatusTellsSessionTimeoutAndServer) {
    const ClientStatus status = h().client->status();
    EXPECT_NE(status.session_id, 0);
    EXPECT_EQ(status.timeout, std::chrono::seconds(20));
    EXPECT_EQ(status.server, connect_string());
    ASSERT_THAT(h().events->statuses(), SizeIs(1));
    EXPECT_EQ(h().events->statuses()[0].session_id, status.session_id);
}

TEST_F(ClientRequestsTest, TheNegotiatedTimeoutIsTold) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    const auto longest = server().options().max_session_timeout;
    TestHandle patient(connect_string(), 2 * longest);
    ASSERT_TRUE(patient.connected());
    EXPECT_EQ(patient.client->status().timeout, longest);
}

TEST_F(ClientRequestsTest, CreateAnswersThePathAndTheWholeStat) {
    const Answer made = h().async_create(path("a"), "data").wait();
    EXPECT_EQ(made.rc, Rc::ok);
    EXPECT_EQ(made.text, path("a"));
    EXPECT_NE(made.stat.czxid, 0);
    EXPECT_EQ(made.stat.czxid, made.stat.mzxid);
    EXPECT_EQ(made.stat.ephemeral_owner, 0);
    EXPECT_EQ(h().async_create(path("a")).wait().rc, Rc::node_exists);
    EXPECT_EQ(h().async_create(path("x/y")).wait().rc, Rc::no_node);

    const Answer read = h().async_get(path("a")).wait();
    EXPECT_EQ(read.rc, Rc::ok);
    EXPECT_EQ(read.text, "data");
    EXPECT_EQ(read.stat.czxid, made.stat.czxid);
    EXPECT_EQ(read.stat.data_length, 4);
    EXPECT_GT(read.stat.ctime_ms, 0);
}

TEST_F(ClientRequestsTest, EachModeMakesItsKindOfNode) {
    const Answer ephemeral = h().async_create(path("e"), {}, CreateMode::ephemeral).wait();
    EXPECT_EQ(ephemeral.stat.ephemeral_owner, h().client->status().session_id);
    const Answer sequential = h().async_create(path("s-"), {}, CreateMode::ephemeral_sequential).wait();
    EXPECT_THAT(sequential.text, StartsWith(path("s-000000000")));
    EXPECT_EQ(sequential.stat.ephemeral_owner, h().client->status().session_id);
    const Answer persistent = h().async_create(path("p-"), {}, CreateMode::persistent_sequential).wait();
    EXPECT_THAT(persistent.text, StartsWith(path("p-000000000")));
    EXPECT_EQ(persistent.stat.ephemeral_owner, 0);
    EXPECT_EQ(h().async_create(path("e/below")).wait().rc, Rc::no_children_for_ephemerals);
}

TEST_F(ClientRequestsTest, AContainerIsMadeOutsideOfAMulti) {
    const Answer made = h().async_create(path("c"), {}, CreateMode::container).wait();
    EXPECT_EQ(made.rc, Rc::ok);
    EXPECT_EQ(made.text, path("c"));
    EXPECT_EQ(h().async_exists(path("c")).wait().rc, Rc::ok);
}

TEST_F(ClientRequestsTest, TheOtherRequestsAnswerWhatTheServersSay) {
    h().async_create(path("a"), "1").wait();
    EXPECT_EQ(h().async_set(path("a"), "22", 0).wait().stat.version, 1);
    EXPECT_EQ(h().async_set(path("a"), "x", 0).wait().rc, Rc::bad_version);
    EXPECT_EQ(h().async_get(path("a")).wait().text, "22");
    h().async_create(path("a/b")).wait();
    h().async_create(path("a/c")).wait();
    const Answer listed = h().async_children(path("a")).wait();
    EXPECT_THAT(listed.names, UnorderedElementsAre("b", "c"));
    EXPECT_EQ(listed.stat.num_children, 2);
    EXPECT_EQ(h().async_remove(path("a")).wait().rc, Rc::not_empty);
    EXPECT_EQ(h().async_remove(path("a/b"), 7).wait().rc, Rc::bad_version);
    EXPECT_EQ(h().async_remove(path("a/b")).wait().rc, Rc::ok);
    EXPECT_EQ(h().async_remove(path("a/b")).wait().rc, Rc::no_node);
    EXPECT_EQ(h().async_sync(path("a")).wait().rc, Rc::ok);
    EXPECT_EQ(h().async_exists(path("none")).wait().rc, Rc::no_node);
    EXPECT_EQ(h().async_get(path("none")).wait().rc, Rc::no_node);
    EXPECT_EQ(h().async_children(path("none")).wait().rc, Rc::no_node);
}

TEST_F(ClientRequestsTest, DataMayBeEmptyOrHoldAnyByte) {
    std::string bytes(1000, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
    h().async_create(path("bytes"), bytes).wait();
    EXPECT_EQ(h().async_get(path("bytes")).wait().text, bytes);
    h().async_create(path("empty"), "").wait();
    const Answer empty = h().async_get(path("empty")).wait();
    EXPECT_EQ(empty.rc, Rc::ok);
    EXPECT_EQ(empty.text, "");
    EXPECT_EQ(empty.stat.data_length, 0);
}

/// Drives a handle of the C client until the condition is true.
bool drive_until(zhandle_t* zh, const std::function<bool()>& condition) {
    return test::await([&] {
        int socket = -1, interest = 0;
        timeval limit{};
        zookeeper_interest(zh, &socket, &interest, &limit);
        zookeeper_process(zh, interest);
        return condition();
    });
}

TEST_F(ClientRequestsTest, ANodeWithoutDataReadsAsEmpty) {
    // We never write null data, others do.
    zhandle_t* const other =
        zookeeper_init(connect_string().c_str(), nullptr, 20'000, nullptr, nullptr, ZOO_NO_LOG_CLIENTENV);
    ASSERT_NE(other, nullptr);
    ASSERT_TRUE(drive_until(other, [&] { return zoo_state(other) == ZOO_CONNECTED_STATE; }));
    std::optional<int> created, read_length;
    const auto on_create = [](int rc, const char*, const void* data) {
        *static_cast<std::optional<int>*>(const_cast<void*>(data)) = rc;
    };
    const auto on_read = [](int, const char*, int length, const Stat*, const void* data) {
        *static_cast<std::optional<int>*>(const_cast<void*>(data)) = length;
    };
    zoo_acreate(other, path("null").c_str(), nullptr, -1, &ZOO_OPEN_ACL_UNSAFE, 0, on_create, &created);
    zoo_aget(other, path("null").c_str(), 0, on_read, &read_length);
    ASSERT_TRUE(drive_until(other, [&] { return read_length.has_value(); }));
    EXPECT_EQ(created, ZOK);
    EXPECT_EQ(read_length, -1);
    zookeeper_close(other);
    const Answer read = h().async_get(path("null")).wait();
    EXPECT_EQ(read.rc, Rc::ok);
    EXPECT_EQ(read.text, "");
}

TEST_F(ClientRequestsTest, RequestsAreAnsweredInTheOrderOfTheCalls) {
    std::mutex mutex;
    std::vector<int> order;
    OneAnswer last;
    for (int i = 0; i < 2000; ++i) {
        const auto note = [&, i](Rc rc) {
            EXPECT_TRUE(rc == Rc::ok || rc == Rc::no_node);
            const std::lock_guard lock(mutex);
            order.push_back(i);
        };
        if (i % 2 == 0)
            h().client->exists(path("x"), false, [note](Rc rc, const NodeStat&) { note(rc); });
        else
            h().client->create(path("n" + std::to_string(i)), {}, Acl::open(), CreateMode::persistent,
                               [note](Rc rc, const std::string&, const NodeStat&) { note(rc); });
    }
    EXPECT_EQ(h().async_sync(root()).wait().rc, Rc::ok);
    const std::lock_guard lock(mutex);
    ASSERT_THAT(order, SizeIs(2000));
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(ClientRequestsTest, MoreRequestsThanTheClientSurvivesAtOnceWaitAndKeepTheirOrder) {
    std::atomic<int> answered = 0;
    std::atomic<bool> in_order = true;
    for (int i = 0; i < 30'000; ++i) {
        h().client->exists(root(), false, [&, i](Rc rc, const NodeStat&) {
            if (rc != Rc::ok || answered != i) in_order = false;
            ++answered;
        });
    }
    EXPECT_TRUE(await_count(answered, 30'000));
    EXPECT_TRUE(in_order);
    EXPECT_EQ(h().events->times(ClientState::connecting), 0U);
}

TEST_F(ClientRequestsTest, AHeartbeatOvertakesWhatWaitsToBeSent) {
    ZKRECIPES_NEEDS_OWN_SERVER();
    testenv::Gate gate(server().endpoint());
    TestHandle busy(gate.connect_string());
    ASSERT_TRUE(busy.connected());
    busy.async_create(path("mine"), {}, CreateMode::ephemeral).wait();
    // No request is answered before the last one is handed over: all that the client sends by then is under way.
    const auto held = gate.hold_reply(testenv::Match::op(testenv::Opcode::exists));
    std::atomic<int> answered = 0, before_heartbeat = -1, before_nudge = -1;
    for (int i = 0; i < 10'000; ++i) busy.client->exists(root(), false, [&](Rc, const NodeStat&) { ++answered; });
    std::atomic<Rc> rc = Rc::nothing;
    busy.client->heartbeat({path("mine")}, [&](Rc answer, const std::vector<MultiResult>&) {
        rc = answer;
        before_heartbeat = answered.load();
    });
    busy.client->nudge([&](Rc, const NodeStat&) { before_nudge = answered.load(); });
    ASSERT_TRUE(held.wait_reached());
    EXPECT_EQ(answered, 0);
    held.release();
    EXPECT_TRUE(await_count(answered, 10'000));
    EXPECT_EQ(rc, Rc::ok);
    EXPECT_EQ(before_heartbeat, 1'000) << "as many may be under way";
    EXPECT_EQ(before_nudge, 1'000);
}

TEST_F(ClientRequestsTest, FewListsOfALargeDirectoryAreUnderWayAtATime) {
    constexpr int kNodes = 2000, kLists = 400;
    std::vector<OneAnswer> made;
    for (int i = 0; i < kNodes; ++i) made.push_back(h().async_create(path("n" + std::to_string(i))));
    for (auto& one : made) one.wait();
    EXPECT_EQ(h().async_exists(root()).wait().stat.num_children, kNodes);  // from now on its size is known
    std::atomic<int> answered = 0, before_heartbeat = -1;
    for (int i = 0; i < kLists; ++i) {
        h().client->children(root(), false, [&](Rc, const std::vector<std::string>&, const NodeStat&) {
            // From the first answer on: so that as many as may be are under way.
            if (++answered > 1) return;
            h().client->heartbeat({path("n0")},
                                  [&](Rc, const std::vector<MultiResult>&) { before_heartbeat = answered.load(); });
        });
    }
    EXPECT_TRUE(await_count(answered, kLists) && await_count(before_heartbeat, 0));
    EXPECT_LE(before_heartbeat, 1 + 1000 / (1 + kNodes / 32));
}

TEST_F(ClientRequestsTest, AnAnswerMaySetOffRequestsOfItsOwn) {
    OneAnswer last;
    h().client->exists(root(), false, [&](Rc, const NodeStat&) {
        h().client->get(root(), false, [&](Rc rc, const std::string&, const NodeStat& stat) {
            last.taker()({.rc = rc, .stat = stat});
        });
    });
    EXPECT_EQ(last.wait().rc, Rc::ok);
}

// ---- multi --------------------------------------------------------------------------------------------------------

MultiOp create_op(const std::string& path, CreateMode mode = CreateMode::persistent) {
    return {.kind = MultiOp::Kind::create, .path = path, .data = "d", .acl = Acl::open(), .mode = mode};
}
MultiOp check_op(const std::string& path, std::int32_t version = -1) {
    return {.kind = MultiOp::Kind::check, .path = path, .data = {}, .acl = {}, .mode = {}, .version = version};
}

TEST_F(ClientRequestsTest, AMultiDoesAllAndAnswersTheNames) {
    h().async_create(path("a")).wait();
    const Answer done = h().async_multi({check_op(path("a")),
                                         create_op(path("a/s-"), CreateMode::ephemeral_sequential),
                                         create_op(path("a/s-"), CreateMode::ephemeral_sequential),
                                         {.kind = MultiOp::Kind::set, .path = path("a"), .data = "new"},
                                         create_op(path("b")),
                                         {.kind = MultiOp::Kind::remove, .path = path("b")}})
                            .wait();
    EXPECT_EQ(done.rc, Rc::ok);
    ASSERT_THAT(done.results, SizeIs(6));
    for (const MultiResult& result : done.results) EXPECT_EQ(result.rc, Rc::ok);
    EXPECT_EQ(done.results[1].path, path("a/s-0000000000"));
    EXPECT_EQ(done.results[2].path, path("a/s-0000000001"));
    EXPECT_EQ(done.results[3].stat.version, 1);
    EXPECT_EQ(done.results[4].path, path("b"));
    EXPECT_EQ(h().async_get(path("a")).wait().text, "new");
    EXPECT_EQ(h().async_exists(path("b")).wait().rc, Rc::no_node);
}

TEST_F(ClientRequestsTest, AFailedMultiDoesNothingAndSaysWhichOperationFailed) {
    h().async_create(path("a")).wait();
    const Answer failed = h().async_multi({create_op(path("b")), check_op(path("a"), 5), check_op(path("a"))}).wait();
    EXPECT_EQ(failed.rc, Rc::bad_version);
    ASSERT_THAT(failed.results, SizeIs(3));
    EXPECT_EQ(failed.results[0].rc, Rc::ok);
    EXPECT_EQ(failed.results[1].rc, Rc::bad_version);
    EXPECT_EQ(failed.results[2].rc, Rc::runtime_inconsistency);
    EXPECT_EQ(failed.results[0].path, "");
    EXPECT_EQ(h().async_exists(path("b")).wait().rc, Rc::no_node);
    EXPECT_EQ(h().async_multi({check_op(path("none"))}).wait().rc, Rc::no_node);
}

TEST_F(ClientRequestsTest, AMultiThatTheClientDoesNotSurviveIsRefused) {
    h().async_create(path("a")).wait();
    EXPECT_EQ(h().async_multi({check_op(path("a")), create_op(path("c"), CreateMode::container)}).wait().rc,
              Rc::bad_arguments);
    EXPECT_EQ(h().async_multi({check_op(path("a")), check_op("relative")}).wait().rc, Rc::bad_arguments);
    EXPECT_EQ(h().async_multi({check_op(path("a")), create_op(path("b/"))}).wait().rc, Rc::bad_arguments);
    EXPECT_EQ(h().async_multi({}).wait().rc, Rc::bad_arguments);
    EXPECT_EQ(h().async_multi({create_op(path("a/"), CreateMode::ephemeral_sequential)}).wait().rc, Rc::ok);
    EXPECT_EQ(h().async_exists(path("c")).wait().rc, Rc::no_node);
    EXPECT_EQ(h().events->times(ClientState::connecting), 0U);
}

TEST_F(ClientRequestsTest, WhatTheServersWouldCutTheConnectionForIsRefused) {
    EXPECT_EQ(h().async_create(path("big"), std::string(2'000'000, 'x')).wait().rc, Rc::too_large);
    h().async_create(path("a")).wait();
    EXPECT_EQ(h().async_set(path("a"), std::string(900'001, 'x')).wait().rc, Rc::too_large);
    EXPECT_EQ(h().async_multi(std::vector<MultiOp>(20'000, check_op(path("a")))).wait().rc, Rc::too_large);
    EXPECT_EQ(h().async_set(path("a"), std::string(890'000, 'x')).wait().rc, Rc::ok);
    EXPECT_EQ(h().async_get(path("a")).wait().text.size(), 890'000U);
    const std::size_t op_bytes = 64 + path("a").size();
    EXPECT_EQ(h().async_multi(std::vector<MultiOp>(890'000 / op_bytes, check_op(path("a")))).wait().rc, Rc::ok);
    EXPECT_EQ(h().events->times(ClientState::connecting), 0U);
}

TEST_F(ClientRequestsTest, BadPathsAreRefusedByAnAnswer) {
    for (const char* bad : {"", "relative", "/a//b", "/a/", "/a/../b"}) {
        EXPECT_EQ(h().async_create(bad).wait().rc, Rc::bad_arguments) << bad;
        EXPECT_EQ(h().async_exists(bad).wait().rc, Rc::bad_arguments) << bad;
        EXPECT_EQ(h().async_remove_watches(bad).wait().rc, Rc::bad_arguments) << bad;
    }
}

// ---- access -------------------------------------------------------------------------------------------------------

TEST_F(ClientRequestsTest, CredentialsAreAcceptedOneAfterTheOther) {
    h().client->add_auth({"digest", "alice:secret"});
    h().client->add_auth({"digest", "bob:secret"});
    ASSERT_TRUE(test::await([&] { return h().events->auths().size() == 2; }));
    EXPECT_THAT(h().events->auths(), ElementsAre(Rc::ok, Rc::ok));
    EXPECT_EQ(h().async_create(path("mine"), {}, CreateMode::persistent, Acl::creator_all()).wait().rc, Rc::ok);
    EXPECT_EQ(h().async_get(path("mine")).wait().rc, Rc::ok);

    TestHandle stranger(connect_string());
    ASSERT_TRUE(stranger.connected());
    EXPECT_EQ(stranger.async_get(path("mine")).wait().rc, Rc::no_auth);
    stranger.client->add_auth({"digest", "bob:secret"});
    ASSERT_TRUE(test::await([&] { return stranger.events->auths().size() == 1; }));
    EXPECT_EQ(stranger.async_get(path("mine")).wait().rc, Rc::ok);  // both are the creator
}

TEST_F(ClientRequestsTest, CredentialsGivenBeforeTheConnectionArePresentedBeforeAnyRequest) {
    h().client->add_auth({"digest", "alice:secret"});
    EXPECT_EQ(h().async_create(path("mine"), {}, CreateMode::persistent, Acl::creator_all()).wait().rc, Rc::ok);
    TestHandle early(connect_string());
    early.client->add_auth({"digest", "alice:secret"});
    ASSERT_TRUE(early.connected());
    EXPECT_EQ(early.async_get(path("mine")).wait().rc, Rc::ok);
}

TEST_F(ClientRequestsTest, RefusedCredentialsEndTheHandle) {
    TestHandle wrong(connect_string());
    ASSERT_TRUE(wrong.connected());
    wrong.client->add_auth({"nosuchscheme", "x"});
    wrong.client->add_auth({"digest", "bob:secret"});
    ASSERT_TRUE(wrong.wait_for(ClientState::auth_failed));
    EXPECT_TRUE(test::await([&] { return wrong.events->auths().size() == 2; }));
    EXPECT_THAT(wrong.events->auths(), ElementsAre(Rc::auth_failed, Rc::auth_failed));
    EXPECT_EQ(wrong.async_exists("/").wait().rc, Rc::auth_failed);
    wrong.client->add_auth({"digest", "late:secret"});
    EXPECT_TRUE(test::await([&] { return wrong.events->auths().size() == 3; }));
    EXPECT_EQ(wrong.events->times(ClientState::auth_failed), 1U);
}

TEST_F(ClientRequestsTest, AnEmptyAccessListIsTheServersNo) {
    EXPECT_EQ(h().async_create(path("a"), {}, CreateMode::persistent, {}).wait().rc, Rc::invalid_acl);
    EXPECT_EQ(h().async_create(path("a"), {}, CreateMode::persistent, Acl::creator_all()).wait().rc, Rc::invalid_acl);
}

}  // namespace
}  // namespace zkrecipes::internal
