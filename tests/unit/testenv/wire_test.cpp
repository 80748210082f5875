#include "testenv/src/wire.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "testenv/src/quorum_links.hpp"

namespace zkrecipes::test {
namespace {

using namespace testenv;  // NOLINT
using testenv::internal::rewrite_election_hello;
using wire::FrameSplitter;
using wire::Writer;

std::string frame_of(const std::string& body) { return Writer().raw(body).frame(); }

std::string create_body(std::int32_t xid, const std::string& path) {
    return Writer()
        .int32(xid)
        .int32(1)
        .text(path)
        .text("data")
        .int32(1)
        .int32(31)
        .text("world")
        .text("anyone")
        .int32(3)
        .bytes();
}

TEST(FrameSplitterTest, CutsFramesHoweverTheBytesArrive) {
    const std::string stream = frame_of("one") + frame_of("") + frame_of("three");
    for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
        FrameSplitter splitter;
        std::vector<std::string> frames;
        for (std::size_t begin = 0; begin < stream.size(); begin += piece) {
            splitter.feed(stream.substr(begin, piece));
            while (const auto frame = splitter.next()) {
                frames.emplace_back(wire::body(*frame));
            }
        }
        EXPECT_EQ(frames, (std::vector<std::string>{"one", "", "three"})) << piece;
        EXPECT_EQ(splitter.buffered(), 0U);
        EXPECT_FALSE(splitter.broken());
    }
}

TEST(FrameSplitterTest, NegativeLengthIsBroken) {
    FrameSplitter splitter;
    splitter.feed(frame_of("fine") + std::string("\xff\xff\xff\xffrest", 8));
    EXPECT_TRUE(splitter.next());
    EXPECT_FALSE(splitter.next());
    EXPECT_TRUE(splitter.broken());
    EXPECT_EQ(splitter.take_rest(), std::string("\xff\xff\xff\xffrest", 8));
}

TEST(FrameSplitterTest, HugeLengthIsBrokenAtOnceAndNothingIsLost) {
    FrameSplitter splitter;
    splitter.feed("srvr");
    EXPECT_FALSE(splitter.next());
    EXPECT_TRUE(splitter.broken());
    splitter.feed("more");
    EXPECT_EQ(splitter.take_rest(), "srvrmore");
}

TEST(FrameSplitterTest, LongestFrameIsBelievedAndOneMoreIsNot) {
    FrameSplitter longest;
    longest.feed(Writer().int32(FrameSplitter::longest).bytes());
    EXPECT_FALSE(longest.next());
    EXPECT_FALSE(longest.broken());
    FrameSplitter longer;
    longer.feed(Writer().int32(FrameSplitter::longest + 1).bytes());
    EXPECT_FALSE(longer.next());
    EXPECT_TRUE(longer.broken());
}

TEST(FrameSplitterTest, GivesMemoryBackOverAManyFrames) {
    FrameSplitter splitter;
    const std::string frame = frame_of(std::string(1000, 'x'));
    for (int i = 0; i < 1000; ++i) {
        splitter.feed(frame + frame.substr(0, 10));
        EXPECT_TRUE(splitter.next());
        splitter.feed(frame.substr(10));
        EXPECT_TRUE(splitter.next());
    }
    EXPECT_EQ(splitter.buffered(), 0U);
}

TEST(WireTest, ReadsRequestsWithTheirPaths) {
    const auto create = wire::parse_request(create_body(7, "/a/b"));
    ASSERT_TRUE(create);
    EXPECT_EQ(create->xid, 7);
    EXPECT_EQ(create->opcode, Opcode::create);
    EXPECT_EQ(create->path, "/a/b");
    EXPECT_EQ(create->flags, 3);
    EXPECT_EQ(create->data_bytes, 4U);
    for (const auto opcode : {Opcode::remove, Opcode::exists, Opcode::get_data, Opcode::set_data, Opcode::get_children,
                              Opcode::get_children2, Opcode::sync, Opcode::remove_watches, Opcode::check_watches}) {
        const auto request = wire::parse_request(wire::body(wire::request(1, opcode, Writer().text("/x").bytes())));
        ASSERT_TRUE(request);
        EXPECT_EQ(request->path, "/x") << to_string(opcode);
    }
    for (const auto opcode : {Opcode::ping, Opcode::auth, Opcode::set_watches, Opcode::close_session}) {
        EXPECT_EQ(wire::parse_request(wire::body(wire::request(-2, opcode)))->opcode, opcode);
    }
}

TEST(WireTest, ReadsThePartsOfAMulti) {
    const std::string multi = Writer()
                                  .int32(5)
                                  .int32(14)
                                  .int32(1)  // create
                                  .byte(0)
                                  .int32(-1)
                                  .raw(create_body(0, "/a").substr(8))
                                  .int32(5)  // set data
                                  .byte(0)
                                  .int32(-1)
                                  .text("/b")
                                  .text("new")
                                  .int32(2)
                                  .int32(13)  // check
                                  .byte(0)
                                  .int32(-1)
                                  .text("/c")
                                  .int32(0)
                                  .int32(-1)
                                  .byte(1)
                                  .int32(-1)
                                  .bytes();
    const auto request = wire::parse_request(multi);
    ASSERT_TRUE(request);
    ASSERT_EQ(request->parts.size(), 3U);
    EXPECT_EQ(request->path, "/a");
    EXPECT_EQ(request->parts[1].opcode, Opcode::set_data);
    EXPECT_EQ(request->parts[1].path, "/b");
    EXPECT_EQ(request->parts[2].opcode, Opcode::check);
    EXPECT_EQ(request->parts[2].path, "/c");
    EXPECT_EQ(request->data_bytes, 3U + wire::parse_request(create_body(0, "/a"))->data_bytes);
}

TEST(WireTest, ShortMessagesAreNothing) {
    for (std::size_t size = 0; size < 8; ++size) {
        EXPECT_FALSE(wire::parse_request(std::string(size, '\0')));
        EXPECT_FALSE(wire::parse_connect_request(std::string(size, '\0')));
        EXPECT_FALSE(wire::parse_connect_response(std::string(size, '\0')));
        EXPECT_FALSE(wire::parse_reply(std::string(size, '\0')));
        EXPECT_FALSE(wire::parse_event(std::string(size, '\0')));
    }
}

TEST(WireTest, RequestWhoseRestIsBrokenKeepsItsOpcode) {
    const auto request = wire::parse_request(Writer().int32(1).int32(1).int32(1'000'000).raw("/x").bytes());
    ASSERT_TRUE(request);
    EXPECT_EQ(request->opcode, Opcode::create);
    EXPECT_EQ(request->path, "");
}

TEST(WireTest, ListLongerThanItsMessageEndsTheReading) {
    // An ACL of two billion entries in a message of forty bytes.
    const auto request =
        wire::parse_request(Writer().int32(1).int32(1).text("/a").text("").int32(2'000'000'000).bytes());
    ASSERT_TRUE(request);
    EXPECT_EQ(request->path, "/a");
}

TEST(WireTest, NullTextIsEmptyAndOtherNegativeLengthsAreFailures) {
    const auto null_text = Writer().int32(-1).bytes();
    EXPECT_EQ(wire::Reader(null_text).text(), "");
    const auto broken_text = Writer().int32(-2).bytes();
    wire::Reader broken(broken_text);
    EXPECT_FALSE(broken.text());
    EXPECT_TRUE(broken.failed());
}

TEST(WireTest, HandshakeGoesThereAndBack) {
    const auto frame = wire::connect_request({1, 2000, 3, "password"});
    const auto request = wire::parse_connect_request(wire::body(frame));
    ASSERT_TRUE(request);
    EXPECT_EQ(request->last_zxid, 1);
    EXPECT_EQ(request->timeout_ms, 2000);
    EXPECT_EQ(request->session_id, 3);
    EXPECT_EQ(request->password, "password");
}

TEST(WireTest, AnyBytesAreSurvived) {
    std::mt19937 random(4711);  // NOLINT: the same bytes in each run
    const std::string valid[] = {create_body(1, "/a/b/c"),
                                 std::string(wire::body(wire::connect_request({1, 2, 3, "p"}))),
                                 Writer().int32(1).int32(14).int32(13).byte(0).int32(-1).text("/c").int32(0).bytes()};
    for (int round = 0; round < 20'000; ++round) {
        std::string bytes = valid[random() % 3];
        for (unsigned changes = random() % 8; changes > 0; --changes) {
            bytes[random() % bytes.size()] = static_cast<char>(random());
        }
        bytes.resize(random() % (bytes.size() + 1));
        (void)wire::parse_request(bytes);
        (void)wire::parse_reply(bytes);
        (void)wire::parse_event(bytes);
        (void)wire::parse_connect_request(bytes);
        (void)wire::parse_connect_response(bytes);
        wire::Reader reader(bytes);
        (void)wire::read_stat(reader);
        (void)rewrite_election_hello(bytes, "127.1.2.3:3888");
        FrameSplitter splitter;
        splitter.feed(bytes);
        std::size_t taken = 0;
        while (const auto frame = splitter.next()) {
            taken += frame->size();
        }
        EXPECT_EQ(taken + splitter.take_rest().size(), bytes.size());
    }
}

TEST(ElectionHelloTest, AddressIsReplacedAndWhatFollowsIsKept) {
    const auto hello = Writer().int64(-65536).int64(2).text("127.9.9.9:3888").raw("more").bytes();
    EXPECT_EQ(rewrite_election_hello(hello, "127.1.2.3:3888"),
              Writer().int64(-65536).int64(2).text("127.1.2.3:3888").raw("more").bytes());
    for (std::size_t size = 0; size < hello.size() - 4; ++size) {
        EXPECT_FALSE(rewrite_election_hello(hello.substr(0, size), "127.1.2.3:3888")) << size;
    }
    const auto several = Writer().int64(-65535).int64(2).text("127.9.9.9:3888|127.9.9.8:3888").bytes();
    EXPECT_EQ(rewrite_election_hello(several, "127.1.2.3:3888"),
              Writer().int64(-65535).int64(2).text("127.1.2.3:3888").bytes());
}

TEST(ElectionHelloTest, OtherBytesStayAsTheyAre) {
    for (const auto& bytes : {std::string("something else"), Writer().int64(-65536).int64(2).int32(-5).bytes(),
                              Writer().int64(-65536).int64(2).int32(1 << 30).bytes()}) {
        EXPECT_EQ(rewrite_election_hello(bytes, "127.1.2.3:3888"), bytes);
    }
}

}  // namespace
}  // namespace zkrecipes::test
