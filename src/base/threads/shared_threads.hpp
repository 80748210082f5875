#pragma once

#include <memory>

#include "base/process.hpp"
#include "base/threads/loop.hpp"
#include "base/threads/workers.hpp"

namespace zkrecipes::internal {

/// The threads that all sessions of a process share. They start with the first session, and end with the last one.
class SharedThreads {
public:
    /// Those that are there, or new ones. Throws std::system_error.
    static std::shared_ptr<SharedThreads> of_this_process();

    SharedThreads();  ///< Throws std::system_error.
    /// Joins them, but for the calling one. In a child of fork(): forgets them.
    ~SharedThreads();
    SharedThreads(const SharedThreads&) = delete;
    SharedThreads& operator=(const SharedThreads&) = delete;

    Loop& loop() noexcept { return *parts_.loop; }
    Workers& workers() noexcept { return *parts_.workers; }

private:
    struct Parts {
        std::shared_ptr<Loop> loop;
        std::shared_ptr<Workers>
            drivers;  // one of them drives the loop; one that is about to block leaves it to another
        std::shared_ptr<Workers> workers;
    };
    struct Registry;
    static Registry& registry();
    void end() noexcept;

    const ProcessMark process_;
    Parts parts_;
};

}  // namespace zkrecipes::internal
