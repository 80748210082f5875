// Every reader of what others wrote, with the corpus of the fuzzer and with broken copies of it: the part of
// scripts/fuzz that needs no fuzzer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/targets.hpp"

namespace zkrecipes::fuzz {
namespace {

class CorpusTest : public ::testing::TestWithParam<Target> {
protected:
    static std::vector<std::string> corpus() {
        std::vector<std::string> inputs;
        const auto folder = std::filesystem::path(ZKRECIPES_FUZZ_CORPUS) / GetParam().name;
        for (const auto& file : std::filesystem::directory_iterator(folder)) {
            std::ifstream stream(file.path(), std::ios::binary);
            inputs.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
        }
        return inputs;
    }
};

TEST_P(CorpusTest, IsReadWhateverItIs) {
    const auto inputs = corpus();
    ASSERT_FALSE(inputs.empty());
    GetParam().run("");
    for (const auto& input : inputs) GetParam().run(input);
}

TEST_P(CorpusTest, IsReadWhateverBecameOfIt) {
    std::mt19937 random(7);
    const auto inputs = corpus();
    const auto below = [&](std::size_t limit) { return random() % std::max<std::size_t>(limit, 1); };
    for (int round = 0; round < 1000; ++round) {
        std::string input = inputs[below(inputs.size())];
        for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
            const std::size_t at = below(input.size());
            switch (random() % 4) {
                case 0: input.insert(at, 1, static_cast<char>(random())); break;
                case 1: input.erase(at, 1 + below(8)); break;
                case 2: input.insert(at, input.substr(below(input.size()), below(16))); break;
                default:
                    if (!input.empty()) input[at] = static_cast<char>(random());
            }
        }
        SCOPED_TRACE(input);
        GetParam().run(input);
    }
}

INSTANTIATE_TEST_SUITE_P(Reader, CorpusTest, ::testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace zkrecipes::fuzz
