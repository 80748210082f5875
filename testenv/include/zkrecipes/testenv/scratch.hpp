#pragma once

#include <string>

namespace zkrecipes::testenv {

/// A directory for the files of a test. It is removed with this object or, whatever is in it, when this process has
/// ended without destroying it, be it by SIGKILL. In memory (/dev/shm) where that is possible. Throws Error.
class Scratch {
public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }
    /// Path of a file in it.
    [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
    int owner_ = 0;  // a forked child leaves it alone
};

}  // namespace zkrecipes::testenv
