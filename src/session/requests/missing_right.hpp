#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/client.hpp"

namespace zkrecipes::internal {

/// Which right a session lacks on which node, if the servers refuse a request by its access list.
struct MissingRight {
    const char* right = "";  // as ZooKeeper's documents call it; "": not known
    std::string path;        // server path
};

// What each request needs. Called with the values of its answer, only if it was refused.

/// Of a request about one node.
class Needs {
public:
    static Needs on(const char* right, const std::string& path) { return {right, path}; }
    static Needs on_parent(const char* right, const std::string& path);
    static Needs nothing() { return {"", {}}; }

    MissingRight operator()(const auto&...) const { return {right_, path_}; }

private:
    Needs(const char* right, std::string path) : right_(right), path_(std::move(path)) {}

    const char* right_;
    std::string path_;
};

/// Of a transaction: the first operation that has this answer was refused.
class NeedsOfEach {
public:
    explicit NeedsOfEach(const std::vector<MultiOp>& ops);
    MissingRight operator()(const std::vector<MultiResult>& results) const;

private:
    std::vector<Needs> each_;
};

}  // namespace zkrecipes::internal
