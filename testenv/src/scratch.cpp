#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <zkrecipes/testenv/error.hpp>
#include <zkrecipes/testenv/scratch.hpp>

#include "keeper.hpp"

namespace zkrecipes::testenv {

Scratch::Scratch() : path_(internal::Keeper::instance().directory() + "/scratch-XXXXXX"), owner_(::getpid()) {
    if (::mkdtemp(path_.data()) == nullptr) {
        throw Error("cannot make " + path_ + ": " + std::strerror(errno));
    }
}

Scratch::~Scratch() {
    if (owner_ == ::getpid() && !internal::keep_files()) {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
}

}  // namespace zkrecipes::testenv
