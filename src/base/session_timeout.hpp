#pragma once

#include <chrono>

namespace zkrecipes::internal {

// The C client allows two thirds of a session timeout for each attempt to connect: with less than this it may never
// succeed, and tries without a pause. And it counts twice the milliseconds in an int; a day is far below that.
inline constexpr std::chrono::milliseconds kShortestSessionTimeout{100};
inline constexpr std::chrono::hours kLongestSessionTimeout{24};

}  // namespace zkrecipes::internal
