#include "base/wait_event.hpp"

#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/context.hpp>
#include <new>

namespace zkrecipes::internal {

bool fibers_work_here() noexcept { return boost::fibers::context::active() != nullptr; }

struct FiberCondition::Fibers {
    boost::fibers::condition_variable_any condition;
};

FiberCondition::FiberCondition() noexcept {
    static_assert(sizeof(Fibers) <= sizeof storage_ && alignof(Fibers) <= alignof(std::max_align_t));
    new (storage_) Fibers;
}
FiberCondition::~FiberCondition() { fibers().~Fibers(); }

FiberCondition::Fibers& FiberCondition::fibers() noexcept { return *std::launder(reinterpret_cast<Fibers*>(storage_)); }

void FiberCondition::wait(std::unique_lock<std::mutex>& lock) {
    fibers_work_here() ? fibers().condition.wait(lock) : threads_.wait(lock);
}

void FiberCondition::notify_all() noexcept {
    fibers().condition.notify_all();
    threads_.notify_all();
}

}  // namespace zkrecipes::internal
