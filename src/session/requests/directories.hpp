#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/result.hpp"

namespace zkrecipes::internal {

/// Makes a directory and its missing ancestors, each as a container and each by itself: the C client aborts the process
/// on a container in a multi. Nothing is read unless a create is forbidden, so no READ permission on ancestors is
/// needed. Pure.
class DirectoryMaker {
public:
    struct Create {
        std::string path;
    };
    struct Exists {
        std::string path;
    };
    using Step = std::variant<Create, Exists, Rc>;  // Rc: the end

    explicit DirectoryMaker(std::string path);

    Step start();
    Step on_created(Rc rc);
    Step on_exists(Rc rc);
    /// What the last answer was about.
    const std::string& at() const noexcept { return missing_.back(); }

private:
    Step made();
    Step go_up();

    std::vector<std::string> missing_;  // the directory first, then the ancestor that is needed for it, …
    int steps_left_;
    Rc refusal_ = Rc::ok;
};

}  // namespace zkrecipes::internal
