#include "core/value/value_follower.hpp"

namespace zkrecipes::internal {

void ValueFollower::start(const std::shared_ptr<SessionCore>& core, const std::string& path) {
    if (watch_) return;
    // The core by its address: it is told by an object that keeps it alive.
    watch_ = std::make_shared<NodeWatch>(core, "SharedValue", path,
                                         [self = shared_from_this(), core = core.get()](const SeenNode& node) {
                                             if (self->sure_in_ != core->incarnation().number) return;
                                             self->known_.reset();
                                             if (node.exists) self->known_ = FoundValue{node.data, node.stat.version};
                                         });
    watch_->start();
}

std::optional<FoundValue> ValueFollower::known(const SessionCore& core) const {
    if (!core.connected()) return known_;
    const bool followed = watch_ && watch_->is_watching() && sure_in_ == core.incarnation().number;
    return followed ? known_ : std::nullopt;
}

void ValueFollower::saw(const SessionCore& core, std::optional<FoundValue> value) {
    known_ = std::move(value);
    sure_in_ = core.incarnation().number;
}

void ValueFollower::stop() {
    if (watch_) watch_->stop();
    // It keeps this object alive by what it tells: the circle ends here.
    watch_.reset();
}

}  // namespace zkrecipes::internal
