// Part of every test program of the preset mutations: says which test comes by which bug (switches.hpp).

#include <gtest/gtest.h>

#include <string>

#include "mutations/switches.hpp"

namespace zkrecipes::internal {
namespace {

class Listener : public testing::EmptyTestEventListener {
    void OnTestStart(const testing::TestInfo& test) override {
        if (!ReachedMutations::recorded()) return;
        ReachedMutations::begin(std::string("test ") + test.test_suite_name() + "." + test.name());
    }
};

[[maybe_unused]] const bool listening = [] {
    testing::UnitTest::GetInstance()->listeners().Append(new Listener);  // gtest owns it
    return true;
}();

}  // namespace
}  // namespace zkrecipes::internal
