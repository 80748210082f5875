#pragma once

#include <stdexcept>
#include <string>

namespace zkrecipes::testenv {

/// Something that the test environment could not do; the text says what and, where a person can act, how.
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Java or the ZooKeeper jars are not there. The text says what to install; tests skip on it.
class MissingDependency : public Error {
public:
    using Error::Error;
};

}  // namespace zkrecipes::testenv
