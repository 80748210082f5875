#include "interop/interop_test.hpp"

#include <algorithm>
#include <cstdio>

namespace zkrecipes::test {
namespace {

std::unique_ptr<PeerProcess>& shared_peer(Who who) {
    static std::unique_ptr<PeerProcess> curator, kazoo;
    return who == Who::curator ? curator : kazoo;
}

// Before the shared server goes, and while main still runs.
class StopPeers : public testing::Environment {
public:
    void TearDown() override {
        shared_peer(Who::curator).reset();
        shared_peer(Who::kazoo).reset();
    }
};
[[maybe_unused]] const auto* const stop_peers = testing::AddGlobalTestEnvironment(new StopPeers);

PeerLanguage language(Who who) { return who == Who::curator ? PeerLanguage::curator : PeerLanguage::kazoo; }

}  // namespace

std::string why_missing(Who who) { return who == Who::cpp ? "" : why_no_peer(language(who)); }

void InteropTest::SetUp() {
    ZkServerTest::SetUp();
    if (!IsSkipped() && uses_outside_ensemble()) GTEST_SKIP() << "asks its own server who watches what";
}

void InteropTest::TearDown() {
    observer_.reset();
    ZkServerTest::TearDown();
}

std::unique_ptr<Client> InteropTest::client(Who who, Names names, std::chrono::milliseconds timeout) {
    if (who == Who::cpp) return make_cpp_client(connect_string(), timeout, names);
    auto& peer = shared_peer(who);
    if (!peer) peer = std::make_unique<PeerProcess>(language(who));
    return peer->client(connect_string(), timeout, names);
}

testenv::RawClient& InteropTest::observer() {
    if (!observer_) observer_.emplace(connect_string());
    return *observer_;
}

std::vector<std::string> InteropTest::queue() {
    auto names = nodes();
    std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
        const auto number = [](const std::string& name) { return name.substr(name.size() - 10); };
        return number(a) != number(b) ? number(a) < number(b) : a < b;
    });
    return names;
}

bool InteropTest::await_watched(const std::string& child) {
    return await([&] { return server().four_letter("wchp").find(lock_path() + "/" + child) != std::string::npos; });
}

void InteropTest::expect_waiting(const Answer& acquire, const std::string& child) {
    EXPECT_TRUE(await_watched(child)) << "nobody waits for " << child;
    EXPECT_FALSE(acquire.done());
}

std::string InteropTest::counter_file() {
    if (counter_file_.empty()) {
        scratch_.emplace();
        counter_file_ = *scratch_ / "counter";
        char zero[21];
        std::snprintf(zero, sizeof zero, "%019d\n", 0);
        std::ofstream(counter_file_) << zero;
    }
    return counter_file_;
}

long InteropTest::counted() const {
    long value = -1;
    std::ifstream(counter_file_) >> value;
    return value;
}

}  // namespace zkrecipes::test
