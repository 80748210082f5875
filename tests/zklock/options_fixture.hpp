#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <utility>
#include <vector>

#include "zklock/command_line/options.hpp"

namespace zkrecipes::zklock {

/// Parses command lines in an environment without settings, but with ZKLOCK_CONNECT.
class OptionsTest : public testing::Test {
protected:
    void SetUp() override {
        for (const char* name :
             {"ZKLOCK_CONNECT", "ZK_HOSTS", "ZKHOSTS", "ZKLOCK_PREFIX", "ZKLOCK_SESSION_TIMEOUT", "ZKLOCK_SERVER_TICK",
              "ZKLOCK_AUTH_FILE", "ZKLOCK_ACL", "ZKLOCK_CONNECT_TIMEOUT", "ZKLOCK_CONFIG", "ZKLOCK_SETTINGS",
              "ZKLOCK_TLS_CA", "ZKLOCK_TLS_CERT", "ZKLOCK_TLS_KEY", "ZKLOCK_TLS_SERVER_NAME", "ZKLOCK_SASL_USER",
              "ZKLOCK_SASL_PASSWORD_FILE", "XDG_CONFIG_HOME", "SHELL"}) {
            ::unsetenv(name);
        }
        ::setenv("HOME", "/nonexistent", 1);
        ::setenv("ZKLOCK_CONNECT", "zk:2181", 1);
    }

    static Options parse(std::vector<const char*> arguments) {
        arguments.insert(arguments.begin(), "zklock");
        Options options;
        parse_options(static_cast<int>(arguments.size()), arguments.data(), options);
        return options;
    }
    /// The exit code and the text of the refusal.
    static std::pair<int, std::string> refusal(std::vector<const char*> arguments) {
        try {
            parse(std::move(arguments));
        } catch (const Failure& failure) {
            return {failure.code, failure.what()};
        }
        return {0, "accepted"};
    }
};

}  // namespace zkrecipes::zklock
