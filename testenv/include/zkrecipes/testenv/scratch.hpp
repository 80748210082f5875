#pragma once

#include <string>

namespace zkrecipes::testenv {

/// A directory for the files of a test, in memory (/dev/shm) if possible. It is removed with this object, or when the
/// process ends without destroying the object, even by SIGKILL. Throws Error.
class Scratch {
public:
    Scratch();  ///< makes the directory
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }  ///< of the directory
    /// The path of a file in the directory.
    [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
    int owner_ = 0;  // a forked child leaves it alone
};

}  // namespace zkrecipes::testenv
