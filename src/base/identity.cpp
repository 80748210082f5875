#include "base/identity.hpp"

namespace zkrecipes::internal {

std::string random_uuid(Runtime& runtime) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::uint64_t high = runtime.random();
    std::uint64_t low = runtime.random();
    high = (high & ~std::uint64_t{0xF000}) | 0x8000;                         // version 8: custom
    low = (low & ~(std::uint64_t{0xC} << 60)) | (std::uint64_t{0x8} << 60);  // variant 1
    std::string text;
    text.reserve(36);
    for (int i = 0; i < 32; ++i) {
        if (i == 8 || i == 12 || i == 16 || i == 20) text.push_back('-');
        const std::uint64_t half = i < 16 ? high : low;
        text.push_back(kDigits[(half >> (60 - 4 * (i % 16))) & 0xF]);
    }
    return text;
}

}  // namespace zkrecipes::internal
