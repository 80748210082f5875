#include "zklock/report/describe.hpp"
#include "zklock/report/json.hpp"

#include <gtest/gtest.h>

#include "zklock/parsed_json.hpp"

#include "zklock/report/events.hpp"

namespace zkrecipes::zklock {
namespace {

using namespace std::chrono_literals;
using WallTime = std::chrono::system_clock::time_point;

const WallTime kNow{1'700'000'000s};

Participant ours() {
    Participant p;
    p.path = "/locks/deploy/_c_u-lock-0000000007";
    p.node = "_c_u-lock-0000000007";
    p.holder = true;
    p.mode = "exclusive";
    p.token = 4294967302;
    p.session_id = 0x10000abcd;
    p.since = kNow - 192s;
    p.id = "web1:4711";
    p.host = "web1";
    p.pid = 4711;
    p.user = "ops";
    p.name = "deploy.sh";
    p.raw = R"({"v":1,"id":"web1:4711"})";
    return p;
}

Participant foreign() {
    Participant p;
    p.path = "/locks/deploy";
    p.node = "x-lock-0000000008";
    p.session_id = 0x2;
    p.since = kNow + 5s;  // its server's clock is ahead
    p.raw = "10.0.0.7\x1b[2J";
    return p;
}

TEST(DescribeTest, SaysWhoHoldsAndForHowLong) {
    EXPECT_EQ(describe(ours(), kNow), "web1 pid 4711 \"deploy.sh\" (ops) for 3m12s");
    EXPECT_EQ(describe(foreign(), kNow), "\"10.0.0.7?[2J\" session 0x2 for 0ms");
}

TEST(DescribeTest, SaysWhatIsNotReadableAndWhatNoSessionEnds) {
    Participant hidden;
    hidden.path = "/l/_c_u-lock-0000000007";
    hidden.node = "_c_u-lock-0000000007";
    hidden.mode = "exclusive";
    hidden.readable = false;
    EXPECT_EQ(describe(hidden, kNow), "_c_u-lock-0000000007 (not readable: an access list forbids it)");
    EXPECT_EQ(block(hidden, "holder ", kNow).find("token"), std::string::npos);
    const Json json(to_json(hidden, kNow));
    EXPECT_EQ(json["readable"], false);
    EXPECT_EQ(json["node"], hidden.path);
    for (const char* unknown : {"fencing_token", "session", "ephemeral", "ctime", "age_ms", "payload", "payload_raw"}) {
        EXPECT_TRUE(json.contains(unknown) && json[unknown].is_null()) << unknown;
    }
    Participant left = ours();
    EXPECT_EQ(Json(to_json(left, kNow))["ephemeral"], true);
    EXPECT_EQ(Json(to_json(left, kNow))["readable"], true);
    left.session_id = 0;
    const std::string note = " (not ephemeral: no session ends it; remove it with zklock break --node)";
    EXPECT_EQ(describe(left, kNow), "web1 pid 4711 \"deploy.sh\" (ops) for 3m12s" + note);
    EXPECT_EQ(Json(to_json(left, kNow))["ephemeral"], false);
    left.children = 2;
    EXPECT_TRUE(describe(left, kNow).ends_with("remove it with zkCli.sh deleteall)"));
}

TEST(DescribeTest, NoControlCharacterReachesTheTerminal) {
    EXPECT_EQ(printable("a\x1b[2J\x7f\n"), "a?[2J??");
    EXPECT_EQ(printable("\xC2\x9B"
                        "2J\xC2\x80\xC2\x9F"),
              "?2J??")
        << "U+009B is ESC [ in one character";
    const std::string words = "\xC2\xA0gr\xC3\xBC\xC3\x9F \xE2\x80\x93 \xC5\x9B \xF0\x9F\x94\x92";
    EXPECT_EQ(printable(words), words) << "these bytes are controls by themselves only";
    EXPECT_EQ(printable("\x9B"
                        "2J \xC3 \xE2\x80 \xC0\x9B \xED\xA0\x80"),
              "?2J ? ?? ?? ???")
        << "a terminal that does not know UTF-8 takes each of these bytes";
    EXPECT_EQ(printable("a\u202Eb\u2066c\u2069\u200F\u2028"), "a?b?c???") << "the line would read backwards";
}

TEST(DescribeTest, JsonSteersNoTerminalEitherAndMeansTheSame) {
    const boost::json::object object = {{"raw", "\u009B2J\u202Eabc\x7F \u00FC"}};
    const std::string text = dump(object);
    EXPECT_EQ(text, R"({"raw":"\u009b2J\u202eabc\u007f ü"})");
    EXPECT_EQ(boost::json::parse(text), object);
}

TEST(DescribeTest, ALineIsCutBetweenCharacters) {
    EXPECT_EQ(fit("für alle", 20), "für alle");
    EXPECT_EQ(fit("für alle", 2), "fü");
    EXPECT_EQ(fit("für alle", 1), "f");
    EXPECT_EQ(fit("a – b", 3), "a –") << "three bytes, one column";
    EXPECT_EQ(fit("漢字", 3), "漢") << "two columns each";
    EXPECT_EQ(fit("", 5), "");
}

TEST(DescribeTest, NodesHaveOnePath) {
    EXPECT_EQ(node_path(ours()), "/locks/deploy/_c_u-lock-0000000007");
    EXPECT_EQ(node_path(foreign()), "/locks/deploy/x-lock-0000000008");
}

TEST(DescribeTest, StatusAsJson) {
    LockView view{"/locks/deploy", {ours(), foreign()}, true};
    const Json json(to_json(view, kNow));
    EXPECT_EQ(json["v"], 1);
    EXPECT_EQ(json["state"], "held");
    EXPECT_EQ(json["mode"], "exclusive");
    EXPECT_EQ(json["count"], 1);
    ASSERT_EQ(json["holders"].size(), 1u);
    const Json holder = json["holders"][0];
    EXPECT_EQ(holder["mode"], "exclusive");
    EXPECT_EQ(holder["fencing_token"], 4294967302);
    EXPECT_EQ(holder["session"], "0x10000abcd");
    EXPECT_EQ(holder["age_ms"], 192000);
    EXPECT_EQ(holder["ctime"], "2023-11-14T22:10:08Z");
    EXPECT_EQ(holder["payload"]["id"], "web1:4711");
    EXPECT_TRUE(holder["payload_raw"].is_null());
    ASSERT_EQ(json["waiters"].size(), 1u);
    EXPECT_EQ(json["waiters"][0]["position"], 1);
    EXPECT_TRUE(json["waiters"][0]["payload"].is_null());
    EXPECT_EQ(json["waiters"][0]["payload_raw"], foreign().raw);
    EXPECT_EQ(json["waiters"][0]["age_ms"], 0);
    EXPECT_EQ(Json(to_json(LockView{"/l", {}, false}, kNow))["state"], "free");
}

TEST(DescribeTest, ASemaphoreSaysHowManyOfItsLeasesAreHeld) {
    Participant lease = ours();
    lease.mode = "semaphore";
    LockView view{"/l", {lease, lease, foreign()}, true, true, 4};
    EXPECT_EQ(state_of(view, view.path), "held (2 of 4 leases)");
    view.leases = 1;  // zklock leases /l 1
    EXPECT_EQ(state_of(view, view.path), "held (2 leases, but their number is now 1)");
    view.leases = 4;
    const Json json(to_json(view, kNow));
    EXPECT_EQ(json["mode"], "semaphore");
    EXPECT_EQ(json["count"], 4);
    EXPECT_EQ(json["state"], "held");
    EXPECT_EQ(json["waiters"].size(), 1u);
    view.leases = 0;  // Curator writes no number
    EXPECT_EQ(state_of(view, view.path), "held (2 leases)");
    EXPECT_TRUE(Json(to_json(view, kNow))["count"].is_null());
    view.participants.erase(view.participants.begin());
    EXPECT_EQ(state_of(view, view.path), "held (1 lease)");
    EXPECT_EQ(state_of({"/l", {}, true}, "/l"), "free");
    EXPECT_EQ(state_of({"/l", {}, false}, "/l"), "free (no such path: not used recently, or mistyped)");
    EXPECT_EQ(state_of({"/l", {}, false}, "/p/l"), "free (no such path /p/l: not used recently, or mistyped)");
    EXPECT_EQ(state_of(LockView{"/l", {foreign()}, true, true, 4}, "/l"), "free");
}

TEST(DescribeTest, ALockThatOnlySharesHoldIsShared) {
    Participant one = ours(), two = ours();
    one.mode = two.mode = "shared";
    one.holder = two.holder = true;
    EXPECT_EQ(Json(to_json(LockView{"/l", {one, two, foreign()}, true}, kNow))["mode"], "shared");
    one.mode = "exclusive";  // its owner has taken a share besides
    EXPECT_EQ(Json(to_json(LockView{"/l", {one, two}, true}, kNow))["mode"], "exclusive");
}

}  // namespace
}  // namespace zkrecipes::zklock
