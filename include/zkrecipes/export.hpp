#pragma once

// Each header of zkrecipes includes this one.
#if __cplusplus < 202002L
#error "zkrecipes needs C++20: compile with -std=c++20, or link zkrecipes::zkrecipes in CMake, which adds that option"
#include <zkrecipes/needs-cxx20>  // does not exist, and so ends the compilation before errors that say less
#endif

/// Marks what the shared library exports; everything else in it is hidden.
#define ZKRECIPES_API [[gnu::visibility("default")]]
