#include "base/threads/shared_threads.hpp"

#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace zkrecipes::internal {

struct SharedThreads::Registry {
    std::mutex mutex;  // guards what follows
    std::weak_ptr<SharedThreads> present;
    std::vector<Parts> inherited;  // their threads are not in this process, so nobody can join them
};

SharedThreads::Registry& SharedThreads::registry() {
    static constinit PerProcess<Registry> registries;
    return registries.get();
}

std::shared_ptr<SharedThreads> SharedThreads::of_this_process() {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    std::shared_ptr<SharedThreads> threads = known.present.lock();
    if (!threads) known.present = threads = std::make_shared<SharedThreads>();
    return threads;
}

SharedThreads::SharedThreads() {
    struct Drive : Serial {
        explicit Drive(std::shared_ptr<Loop> driven) : loop(std::move(driven)) {}
        bool run_one() noexcept override {
            loop->run();
            return false;
        }
        const std::shared_ptr<Loop> loop;
    };
    parts_.loop = std::make_shared<Loop>();
    parts_.drivers = std::make_shared<Workers>("zkr-loop", parts_.loop);
    parts_.workers = std::make_shared<Workers>("zkr-worker", parts_.loop);
    parts_.loop->set_successor([known = std::weak_ptr(parts_.drivers), driven = std::weak_ptr(parts_.loop)] {
        const auto drivers = known.lock();
        const auto loop = driven.lock();
        try {
            return drivers && loop && drivers->schedule_at_once(std::make_shared<Drive>(loop));
        } catch (const std::bad_alloc&) {
            return false;
        }
    });
    try {
        // All of them before there is anything to do: a thread that the system refuses later would break whatever step
        // of a session first needs it.
        parts_.workers->start();
        parts_.drivers->start();
        parts_.drivers->schedule(std::make_shared<Drive>(parts_.loop));
    } catch (...) {
        end();
        throw;
    }
}

SharedThreads::~SharedThreads() {
    if (!process_.inherited()) {
        end();
        return;
    }
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    known.inherited.push_back(std::move(parts_));
}

void SharedThreads::end() noexcept {
    parts_.loop->end();
    parts_.workers->end();
    parts_.drivers->end();
}

}  // namespace zkrecipes::internal
