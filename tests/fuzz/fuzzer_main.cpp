// What libFuzzer calls. $ZKRECIPES_FUZZ_TARGET says which reader gets the input; scripts/fuzz sets it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "fuzz/targets.hpp"

namespace {

const zkrecipes::fuzz::Target& chosen() {
    const char* const name = std::getenv("ZKRECIPES_FUZZ_TARGET");
    if (const auto* target = zkrecipes::fuzz::find_target(name ? name : "")) return *target;
    std::fputs("ZKRECIPES_FUZZ_TARGET must be one of:", stderr);
    for (const auto& each : zkrecipes::fuzz::targets()) std::fprintf(stderr, " %s", each.name.data());
    std::fputs("\n", stderr);
    std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto& target = chosen();
    target.run({reinterpret_cast<const char*>(data), size});
    return 0;
}
