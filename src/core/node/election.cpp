#include "core/node/election.hpp"

#include <utility>

#include "base/paths.hpp"
#include "core/operation/read_op.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/participants.hpp"

namespace zkrecipes::internal {
namespace {

void name_candidate(Participant& participant) {
    if (participant.id.empty() && !participant.revocation_requested) participant.id = participant.raw;
}

class LeaderReader final : public ReadOp {
public:
    LeaderReader(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path, std::string directory)
        : ReadOp(std::move(core), operation, std::move(user_path)), directory_(std::move(directory)) {}

    std::optional<Participant> leader;

private:
    void begin() override {
        core().children(directory_,
                        listed(directory_, [this](Rc, const std::vector<std::string>& names, const NodeStat&, Instant) {
                            const auto queue = sorted_queue(names, lock_patterns());
                            if (queue.empty()) return done();
                            read(std::string(queue.front().name));
                        }));
    }

    void read(const std::string& name) {
        const auto path = join_path(directory_, name);
        core().get(path, guard([this, name, path](Rc rc, const std::string& data, const NodeStat& stat, Instant) {
                       const bool hidden = rc == Rc::no_auth;  // it leads all the same
                       if (!hidden && !usable(rc, "get", path)) return;
                       if (rc == Rc::no_node) return begin();  // resigned meanwhile: another one leads
                       leader = hidden ? unreadable_participant(user_path_, name)
                                       : candidate_of(user_path_, name, data, stat);
                       leader->holder = true;
                       done();
                   }));
    }

    const std::string directory_;
};

}  // namespace

Participant candidate_of(const std::string& user_directory, const std::string& name, std::string data,
                         const NodeStat& stat) {
    auto candidate = participant_of(user_directory, name, std::move(data), stat);
    name_candidate(candidate);
    return candidate;
}

Steps<std::optional<Participant>> read_leader(const std::shared_ptr<SessionCore>& core, const char* operation,
                                              const std::string& user_path, const std::string& directory) {
    return found_by(std::make_shared<LeaderReader>(core, operation, user_path, directory), &LeaderReader::leader);
}

Steps<std::vector<Participant>> read_candidates(std::shared_ptr<SessionCore> core, const char* operation,
                                                std::string user_path, std::string directory) {
    auto candidates = co_await read_participants(core, operation, user_path, directory);
    for (auto& candidate : candidates) name_candidate(candidate);
    co_return candidates;
}

}  // namespace zkrecipes::internal
