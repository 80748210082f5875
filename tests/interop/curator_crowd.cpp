#include "interop/curator_crowd.hpp"

#include <utility>

namespace zkrecipes::test {
namespace {

using namespace std::chrono_literals;

const char* kind_of(MultiLock::As as) {
    return as == MultiLock::As::mutex ? "mutex" : as == MultiLock::As::exclusive ? "write" : "read";
}

class CuratorCrowdClient final : public CrowdClient {
public:
    CuratorCrowdClient(std::unique_ptr<Client> client, std::chrono::milliseconds give_way_after)
        : client_(std::move(client)), for_each_(give_way_after > 0ms ? give_way_after : Client::kForever) {}

    bool acquire(const std::vector<MultiLock::Member>& members, std::chrono::milliseconds patience) override {
        members_ = members;
        if (members.size() == 1) return client_->acquire(kind_of(members[0].as), members[0].path, patience).yes();
        Client::Fields words = {"acquire_set", std::to_string(for_each_.count())};
        for (const auto& member : members) {
            words.emplace_back(kind_of(member.as));
            words.push_back(member.path);
        }
        const auto limit = std::chrono::steady_clock::now() + patience;
        while (!client_->ask(words).yes()) {
            if (std::chrono::steady_clock::now() > limit) return false;
        }
        return true;
    }

    void release() override {
        const bool single = members_.size() == 1;
        (single ? client_->release(kind_of(members_[0].as), members_[0].path) : client_->ask({"release_set"})).fields();
    }

private:
    const std::unique_ptr<Client> client_;
    const std::chrono::milliseconds for_each_;
    std::vector<MultiLock::Member> members_;
};

}  // namespace

std::vector<std::unique_ptr<CrowdClient>> curator_guests(PeerProcess& peer, const std::string& hosts, std::size_t count,
                                                         std::chrono::milliseconds give_way_after) {
    std::vector<std::unique_ptr<CrowdClient>> guests;
    while (guests.size() < count) {
        guests.push_back(std::make_unique<CuratorCrowdClient>(peer.client(hosts, 10s), give_way_after));
    }
    return guests;
}

}  // namespace zkrecipes::test
