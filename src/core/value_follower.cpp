#include "core/value_follower.hpp"

namespace zkrecipes::internal {

void ValueFollower::start(const std::shared_ptr<SessionCore>& core, const std::string& path) {
    if (watch_) return;
    watch_ = std::make_shared<NodeWatch>(core, "SharedValue", path, [self = shared_from_this()](const SeenNode& node) {
        self->known_.reset();
        if (node.exists) self->known_ = FoundValue{node.data, node.stat.version};
    });
    watch_->start();
}

void ValueFollower::stop() {
    if (watch_) watch_->stop();
    // It keeps this object alive by what it tells: the circle ends here.
    watch_.reset();
}

}  // namespace zkrecipes::internal
