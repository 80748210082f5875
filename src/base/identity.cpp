#include "base/identity.hpp"

namespace zkrecipes::internal {

std::string random_uuid(Runtime& runtime) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::uint64_t high = runtime.random();
    std::uint64_t low = runtime.random();
    high = (high & ~std::uint64_t{0xF000}) | 0x8000;                         // version 8: custom
    low = (low & ~(std::uint64_t{0xC} << 60)) | (std::uint64_t{0x8} << 60);  // variant 1
    std::string text = "00000000-0000-0000-0000-000000000000";
    const auto write = [&](std::size_t at, std::size_t digits, std::uint64_t number) {
        for (std::size_t i = at + digits; i-- > at; number >>= 4) text[i] = kDigits[number & 0xF];
    };
    write(0, 8, high >> 32);
    write(9, 4, high >> 16);
    write(14, 4, high);
    write(19, 4, low >> 48);
    write(24, 12, low);
    return text;
}

}  // namespace zkrecipes::internal
