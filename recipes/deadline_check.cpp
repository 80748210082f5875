#include <zkrecipes/exclusive_mutex.hpp>  // placeholder until the first recipe
