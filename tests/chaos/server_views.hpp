#pragma once

#include <zkrecipes/testenv/zk_ensemble.hpp>

#include <string>
#include <vector>

namespace zkrecipes::chaos {

/// The ephemeral nodes at and below a directory, by who shows them.
struct ServerViews {
    std::vector<std::string> everywhere;
    std::vector<std::string> disagreed;  ///< "PATH: server 1 of 3": these show it, and the others do not

    bool empty() const { return everywhere.empty() && disagreed.empty(); }
};

/// Asks every member by itself, each after a sync. Only when nobody writes any more do the answers belong together.
///
/// Servers that have taken part in an election can differ for good: a transaction that one of them has lost, or has
/// and should not have (ZOOKEEPER-4712, 4785 and 5010 are of this kind). Whoever is connected there waits for a node
/// that everybody else knows to be gone. Its reads cannot tell it, and it is not to blame.
ServerViews ephemerals_of_each_server(const testenv::ZkEnsemble& ensemble, const std::string& directory);

/// Which lock: the number behind `directory` in such a line; -1: none.
int lock_of_path(const std::string& path, const std::string& directory);

}  // namespace zkrecipes::chaos
