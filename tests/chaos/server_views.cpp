#include "chaos/server_views.hpp"

#include <charconv>
#include <map>
#include <zkrecipes/testenv/raw_client.hpp>

namespace zkrecipes::chaos {
namespace {

void collect_ephemerals(testenv::RawClient& client, const std::string& path, int server,
                        std::map<std::string, std::vector<int>>& shown_by) {
    const auto names = client.children(path);
    if (!names) return;
    for (const auto& name : *names) {
        const std::string child = path + "/" + name;
        const auto stat = client.exists(child);
        if (stat && stat->ephemeral_owner != 0) shown_by[child].push_back(server);
        collect_ephemerals(client, child, server, shown_by);
    }
}

}  // namespace

ServerViews ephemerals_of_each_server(const testenv::ZkEnsemble& ensemble, const std::string& directory) {
    std::map<std::string, std::vector<int>> shown_by;
    for (int i = 0; i < ensemble.size(); ++i) {
        testenv::RawClient client(ensemble.connect_string(i));
        client.sync(directory);
        collect_ephemerals(client, directory, i, shown_by);
    }
    ServerViews views;
    for (const auto& [path, servers] : shown_by) {
        if (static_cast<int>(servers.size()) == ensemble.size()) {
            views.everywhere.push_back(path);
            continue;
        }
        std::string text = path + ": server";
        for (const int server : servers) text += " " + std::to_string(server + 1);
        views.disagreed.push_back(text + " of " + std::to_string(ensemble.size()));
    }
    return views;
}

int lock_of_path(const std::string& path, const std::string& directory) {
    int lock = -1;
    if (path.size() <= directory.size() || path.compare(0, directory.size(), directory) != 0) return lock;
    std::from_chars(path.data() + directory.size() + 1, path.data() + path.size(), lock);
    return lock;
}

}  // namespace zkrecipes::chaos
