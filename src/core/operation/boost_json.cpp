// Boost.JSON, compiled once. In a file of its own: a program that links another copy never takes this one out of the
// static library.
#include <boost/json/src.hpp>
