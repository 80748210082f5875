#pragma once

#include <string>
#include <string_view>

namespace zkrecipes::bench {

// Names and data of the floors' nodes have the lengths that those of zkrecipes usually have.

inline std::string directory_of(int lock) { return "/floor-" + std::to_string(lock); }
inline constexpr std::string_view kNodeName = "/_c_00000000-0000-4000-8000-000000000000-lock-";
inline const std::string kNodeData(150, 'x');
inline constexpr int kSessionMilliseconds = 30'000;

/// The number that the server appends to the name of a sequential node.
inline std::string_view number_of(std::string_view node) { return node.substr(node.size() - 10); }

}  // namespace zkrecipes::bench
