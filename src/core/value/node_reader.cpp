#include "core/value/node_reader.hpp"

#include <utility>
#include <vector>

namespace zkrecipes::internal {
namespace {

class NodeReader final : public ReadOp {
public:
    NodeReader(std::shared_ptr<SessionCore> core, const char* operation, std::string user_path, std::string path,
               Fresh fresh, std::shared_ptr<const Hold> within)
        : ReadOp(std::move(core), operation, std::move(user_path)),
          path_(std::move(path)),
          fresh_(fresh),
          within_(std::move(within)) {}

    std::optional<NodeContent> content;

private:
    void begin() override {
        first_done_ = false;
        got_ = false;
        if (within_) {
            if (!within_->held()) return fail_lost();
            core().multi(checks(), guard([this](Rc rc, const std::vector<MultiResult>&, Instant) {
                             if (!usable(rc, "check", within_->node())) return;
                             rc == Rc::ok ? first_is_done() : fail_lost();
                         }));
        } else if (fresh_ == Fresh::yes) {
            core().sync(path_, guard([this](Rc rc, Instant) {
                            if (usable(rc, "sync", path_)) first_is_done();
                        }));
        } else {
            first_done_ = true;
        }
        core().get(path_, guard([this](Rc rc, const std::string& data, const NodeStat& stat, Instant) {
                       if (usable(rc, "get", path_)) on_got(rc, data, stat);
                   }));
    }

    std::vector<MultiOp> checks() const {
        std::vector<MultiOp> ops;
        for (const auto& node : within_->nodes()) ops.emplace_back().path = node;
        return ops;
    }

    void first_is_done() {
        first_done_ = true;
        if (got_) done();
    }
    void on_got(Rc rc, const std::string& data, const NodeStat& stat) {
        content.reset();
        if (rc == Rc::ok) {
            content.emplace();
            content->path = user_path_;
            content->data = data;
            content->version = stat.version;
            content->children = stat.num_children;
            content->created = stat.czxid;
            content->created_at = std::chrono::system_clock::time_point(std::chrono::milliseconds(stat.ctime_ms));
            content->changed = stat.mzxid;
            content->changed_at = std::chrono::system_clock::time_point(std::chrono::milliseconds(stat.mtime_ms));
            content->session_id = stat.ephemeral_owner;
        }
        got_ = true;
        if (first_done_) done();
    }
    void fail_lost() { fail(Errc::lock_lost, "the hold is over; stop the guarded work"); }

    const std::string path_;
    const Fresh fresh_;
    const std::shared_ptr<const Hold> within_;  // null: whenever
    bool first_done_ = false;
    bool got_ = false;
};

}  // namespace

Steps<std::optional<NodeContent>> read_content(const std::shared_ptr<SessionCore>& core, const char* operation,
                                               const std::string& path, Fresh fresh,
                                               std::shared_ptr<const Hold> within) {
    return found_by(std::make_shared<NodeReader>(core, operation, path, core->server_path(path, operation), fresh,
                                                 std::move(within)),
                    &NodeReader::content);
}

}  // namespace zkrecipes::internal
