#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace zkrecipes::internal {

/// Two's complement, the most significant byte first: what Java's ByteBuffer and kazoo's struct.pack(">…") write.
template <class Integer>
std::string to_big_endian(Integer number) {
    const auto bits = static_cast<std::make_unsigned_t<Integer>>(number);
    std::string bytes(sizeof(Integer), '\0');
    for (std::size_t i = 0; i < sizeof(Integer); ++i) {
        bytes[i] = static_cast<char>(static_cast<unsigned char>(bits >> (8 * (sizeof(Integer) - 1 - i))));
    }
    return bytes;
}

/// Empty: not of that size.
template <class Integer>
std::optional<Integer> from_big_endian(std::string_view bytes) {
    if (bytes.size() != sizeof(Integer)) return std::nullopt;
    std::make_unsigned_t<Integer> bits = 0;
    for (const char byte : bytes) {
        bits = static_cast<std::make_unsigned_t<Integer>>((bits << 8) | static_cast<unsigned char>(byte));
    }
    return static_cast<Integer>(bits);
}

}  // namespace zkrecipes::internal
