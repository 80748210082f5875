#include "zklock/look/lock_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "zklock/look/top_picture.hpp"
#include "zklock/parsed_json.hpp"

namespace zkrecipes::zklock {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::string identity(int client) { return "_c_00000000-0000-4000-8000-00000000000" + std::to_string(client) + "-"; }

class LockTableTest : public testing::Test {
protected:
    static Participant node(const std::string& directory, const std::string& name, bool holder,
                            const std::string& mode = "exclusive") {
        Participant one;
        one.path = directory + "/" + name;
        one.node = name;
        one.holder = holder;
        one.mode = mode;
        return one;
    }
    /// A lock with a holder and so many waiters.
    static LockNames lock(const std::string& path, int waiters) {
        LockNames names{path, true, {}, {}};
        for (int i = 0; i <= waiters; ++i) {
            names.participants.push_back(node(path, "lock-" + std::to_string(i), i == 0));
        }
        return names;
    }
    static LockNames directory(const std::string& path, std::vector<std::string> others) {
        return {path, true, {}, std::move(others)};
    }
    std::vector<std::string> shown(const LockTable& table) const {
        std::vector<std::string> out;
        for (const LockRow& row : table.rows()) {
            out.push_back(row.path + " " + row.mode + " " + std::to_string(row.holders) + "/" +
                          std::to_string(row.waiters));
        }
        return out;
    }
    void scan(LockTable& table, const std::map<std::string, LockNames>& tree) {
        while (const auto path = table.next_unlisted()) table.listed(tree.at(*path), now_);
    }

    Instant now_ = Instant() + 1h;
};

TEST_F(LockTableTest, TheLocksWithTheMostWaitersComeFirst) {
    LockTable table("/l", "");
    scan(table, {{"/l", directory("/l", {"/l/a", "/l/b", "/l/c", "/l/d"})},
                 {"/l/a", lock("/l/a", 0)},
                 {"/l/b", lock("/l/b", 2)},
                 {"/l/c", directory("/l/c", {})},
                 {"/l/d", lock("/l/d", 0)}});
    EXPECT_THAT(shown(table), ElementsAre("/l/b exclusive 1/2", "/l/a exclusive 1/0", "/l/d exclusive 1/0"));
    EXPECT_EQ(table.rows().front().holder, "/l/b/lock-0");
}

TEST_F(LockTableTest, ASemaphoreIsOneLock) {
    LockTable table("/", "/zookeeper");
    LockNames leases = directory("/s/leases", {});
    leases.participants = {node("/s/leases", identity(1) + "lease-1", true, "semaphore"),
                           node("/s/leases", identity(2) + "lease-2", true, "semaphore")};
    LockNames queue = directory("/s/locks", {});
    queue.participants = {node("/s/locks", identity(2) + "lock-2", true),
                          node("/s/locks", identity(3) + "lock-3", false)};
    scan(table, {{"/", directory("/", {"/s", "/zookeeper"})},
                 {"/s", directory("/s", {"/s/leases", "/s/locks"})},
                 {"/s/leases", leases},
                 {"/s/locks", queue}});
    EXPECT_THAT(shown(table), ElementsAre("/s semaphore 2/1")) << "client 2 has its lease already";
    EXPECT_THAT(table.rows()[0].directories, UnorderedElementsAre("/s/leases", "/s/locks"));
    leases.participants.clear();
    table.listed(leases, now_);
    EXPECT_THAT(shown(table), ElementsAre("/s semaphore 0/2"));
}

TEST_F(LockTableTest, LocksOfTheseNamesAreNoSemaphore) {
    LockTable table("/a", "");
    scan(table, {{"/a", directory("/a", {"/a/leases", "/a/locks"})},
                 {"/a/leases", lock("/a/leases", 0)},
                 {"/a/locks", lock("/a/locks", 1)}});
    EXPECT_THAT(shown(table), ElementsAre("/a/locks exclusive 1/1", "/a/leases exclusive 1/0"));
}

TEST_F(LockTableTest, WhatIsGoneIsForgottenWithWhatIsBelow) {
    LockTable table("/l", "");
    scan(table, {{"/l", directory("/l", {"/l/a"})},
                 {"/l/a", directory("/l/a", {"/l/a/b", "/l/a/c"})},
                 {"/l/a/b", lock("/l/a/b", 0)},
                 {"/l/a/c", lock("/l/a/c", 0)}});
    EXPECT_EQ(table.rows().size(), 2u);
    table.listed({"/l/a", false, {}, {}}, now_);
    EXPECT_THAT(shown(table), IsEmpty());
    now_ += 1h;
    EXPECT_EQ(table.next_due(now_), "/l");
    EXPECT_EQ(table.next_due(now_), std::nullopt);
    table.listed(directory("/l", {"/l/a"}), now_);
    EXPECT_EQ(table.next_due(now_), "/l/a") << "made again";
}

TEST_F(LockTableTest, WhatMayNotBeReadIsTold) {
    LockTable table("/l", "");
    table.listed(directory(*table.next_unlisted(), {"/l/a"}), now_);
    table.unreadable(*table.next_unlisted(), now_);
    EXPECT_THAT(table.unreadable_paths(), ElementsAre("/l/a"));
    now_ += 1h;
    EXPECT_TRUE(table.next_due(now_));
    EXPECT_TRUE(table.next_due(now_)) << "is tried again";
    table.listed(lock("/l/a", 0), now_);
    EXPECT_THAT(table.unreadable_paths(), IsEmpty());
}

TEST_F(LockTableTest, ADirectoryThatWasNotAnsweredIsListedAgain) {
    LockTable table("/l", "");
    EXPECT_EQ(table.next_unlisted(), "/l");
    EXPECT_EQ(table.next_unlisted(), std::nullopt);
    table.failed("/l");
    EXPECT_EQ(table.next_unlisted(), "/l");
    table.listed(directory("/l", {}), now_);
    now_ += 1h;
    EXPECT_EQ(table.next_due(now_), "/l");
    EXPECT_EQ(table.next_due(now_), std::nullopt) << "under way";
    table.failed("/l");
    EXPECT_EQ(table.next_due(now_), "/l");
}

TEST_F(LockTableTest, TheOldestLookIsThatOfTheLastAnswerAlsoWhileTheNextOneIsUnderWay) {
    LockTable table("/locks", "");
    scan(table, {{"/locks", lock("/locks", 1)}});
    now_ += 11s;
    ASSERT_EQ(table.next_due(now_), "/locks");
    EXPECT_EQ(table.oldest_look(now_), 11s);
}

/// With forty requests a second, in ten minutes of the test.
TEST_F(LockTableTest, WhatIsShownIsListedOftenAndEverythingElseInTime) {
    constexpr int kLocks = 1000, kShown = 40;
    LockTable table("/l", "");
    std::map<std::string, LockNames> tree;
    std::vector<std::string> paths;
    for (int i = 0; i < kLocks; ++i) paths.push_back("/l/" + std::to_string(1000 + i));
    tree["/l"] = directory("/l", paths);
    for (const std::string& path : paths) tree[path] = lock(path, 0);
    scan(table, tree);
    std::vector<LockRow> rows = table.rows();
    rows.resize(kShown);
    table.show(rows);
    std::map<std::string, Instant> listed_at;
    std::map<std::string, Nanoseconds> longest;
    for (const auto& [path, names] : tree) listed_at[path] = now_;
    for (int request = 0; request < 40 * 600; ++request) {
        now_ += 25ms;
        const auto path = table.next_due(now_);
        if (!path) continue;
        longest[*path] = std::max<Nanoseconds>(longest[*path], now_ - listed_at[*path]);
        listed_at[*path] = now_;
        table.listed(tree[*path], now_);
    }
    EXPECT_LE(longest["/l"], 4s);
    for (int i = 0; i < kLocks; ++i) EXPECT_LE(longest[paths[i]], i < kShown ? 4s : kLocks * 100ms) << paths[i];
    EXPECT_EQ(longest.size(), kLocks + 1u);
}

TEST_F(LockTableTest, ALockThatHasChangedIsLookedAtSoonAgain) {
    LockTable table("/l", "");
    std::map<std::string, LockNames> tree;
    std::vector<std::string> paths;
    for (int i = 0; i < 1000; ++i) paths.push_back("/l/" + std::to_string(1000 + i));
    tree["/l"] = directory("/l", paths);
    for (const std::string& path : paths) tree[path] = lock(path, 0);
    scan(table, tree);
    now_ += 1h;
    table.listed(lock(paths[500], 1), now_);
    Instant listed_at = now_;
    for (int looks = 0; looks < 5;) {
        now_ += 25ms;
        const auto path = table.next_due(now_);
        if (!path) continue;
        table.listed(*path == paths[500] ? lock(*path, 1) : tree[*path], now_);
        if (*path != paths[500]) continue;
        EXPECT_LE(now_ - listed_at, 4s);
        listed_at = now_;
        ++looks;
    }
}

TEST(TopPictureTest, ThePictureFitsTheTerminal) {
    std::vector<LockRow> rows;
    for (int i = 0; i < 100; ++i) {
        rows.push_back({"/locks/" + std::string(80, 'x') + std::to_string(i), "exclusive", 1, 2, "/n", {}});
    }
    TopPicture picture = picture_of_rows(rows, 20);
    picture.prefix = "/locks";
    EXPECT_EQ(picture.locks, 100u);
    EXPECT_EQ(picture.held, 100u);
    EXPECT_EQ(picture.waiters, 200u);
    const std::string text = in_words(picture, 40);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), static_cast<std::ptrdiff_t>(20 + kTopLines));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 40u);
    EXPECT_THAT(text, HasSubstr("...xxxxxxxxxxxxxxxx7 ")) << "and the end of the path is shown";
    EXPECT_THAT(in_words(picture, 0), HasSubstr("and 80 further locks"));
}

TEST(TopPictureTest, ALongPathLeavesRoomForTheAgeOfThePicture) {
    TopPicture picture;
    picture.prefix = "/services/production/region-1/locks";
    picture.locks = picture.held = 812;
    picture.waiters = 1204;
    picture.oldest_look = 31s;
    std::string header = in_words(picture, 80);
    header.erase(header.find('\n'));
    EXPECT_THAT(header, testing::EndsWith("  ...on-1/locks: 812 locks, 812 held, 1204 waiters, oldest look 31s ago"));
    EXPECT_EQ(header.size(), 80u);
    EXPECT_THAT(in_words(picture, 0), HasSubstr("  " + picture.prefix + ": "));
    EXPECT_THAT(in_words(picture, 120), HasSubstr("  " + picture.prefix + ": "));
}

TEST(TopPictureTest, TextOfOthersCannotSteerTheTerminal) {
    NodeContent node;
    node.path = "/l/n";
    node.session_id = 0x1;
    node.data = R"({"host":"web\u001b[2J","pid":7,"name":"\u202e","user":"u"})";
    TopPicture picture = picture_of_rows({{"/l\x1b", "exclusive", 2, 0, "/l/n", {}}}, 5);
    picture.holders["/l/n"] = owner_of(node);
    picture.trouble = "\x1b[2J";
    const std::string text = in_words(picture, 0);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_THAT(text, HasSubstr("web?[2J pid 7 \"?\" (u)"));
    EXPECT_THAT(text, HasSubstr(" and 1 more"));
    const auto json = Json::parse(in_json(picture));
    EXPECT_EQ(json["locks"][0]["holder"]["payload"]["pid"], 7);
    node.data = "10.0.0.7";
    picture.holders["/l/n"] = owner_of(node);
    EXPECT_THAT(in_words(picture, 0), HasSubstr("\"10.0.0.7\" session 0x1"));
    picture.holders["/l/n"].reset();
    EXPECT_THAT(in_words(picture, 0), HasSubstr("/l/n and 1 more"));
}

}  // namespace
}  // namespace zkrecipes::zklock
