// The function of a shared library that a function of the program stands in front of.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

template <typename Function>
Function* hidden_function(const char* name) {
    void* const found = dlsym(RTLD_NEXT, name);
    if (found == nullptr) {
        std::fprintf(stderr, "hidden_function: there is no %s in a shared library\n", name);
        std::abort();
    }
    return reinterpret_cast<Function*>(found);
}
