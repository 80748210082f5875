#pragma once

/// Marks what the shared library exports; everything else in it is hidden.
#define ZKRECIPES_API [[gnu::visibility("default")]]
