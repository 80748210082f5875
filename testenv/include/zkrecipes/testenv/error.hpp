#pragma once

#include <stdexcept>
#include <string>

namespace zkrecipes::testenv {

/// The test environment failed. The text says what failed and, if possible, the remedy.
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Java or the ZooKeeper jars are missing. The text says what to install. Tests are skipped then.
class MissingDependency : public Error {
public:
    using Error::Error;
};

}  // namespace zkrecipes::testenv
