#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <zkrecipes/group_member.hpp>
#include <zkrecipes/persistent_node.hpp>

#include "server/exclusive_mutex_support.hpp"

namespace zkrecipes::test {

/// What a listener was told, in order.
class Heard {
public:
    void add(std::string what) {
        const std::lock_guard lock(mutex_);
        told_.push_back(std::move(what));
    }
    PersistentNode::Listener states() {
        return [this](PersistentNodeState state) { add(to_string(state)); };
    }
    Group::Observer members() {
        return [this](const GroupMembers& members) { add(line_of(members)); };
    }
    static std::string line_of(const GroupMembers& members) {
        std::string line;
        for (const auto& [id, payload] : members) line += (line.empty() ? "" : " ") + id + "=" + payload;
        return line;
    }
    std::vector<std::string> all() const {
        const std::lock_guard lock(mutex_);
        return told_;
    }
    bool await_last(const std::string& what) const {
        return await([&] {
            const auto told = all();
            return !told.empty() && told.back() == what;
        });
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> told_;
};

class NodesServerTest : public ExclusiveMutexServerTest {
protected:
    std::string node_path() const { return path("group/node"); }
    std::string group_path() const { return path("group"); }
    std::string data_of(const std::string& node) {
        const auto found = observer().get(node);
        return found ? found->data : "<none>";
    }
    bool await_data(const std::string& node, const std::string& data) {
        return await([&] { return data_of(node) == data; });
    }
    std::int64_t owner_of(const std::string& node) {
        const auto found = observer().exists(node);
        return found ? found->ephemeral_owner : -1;
    }
    /// What has passed the gate about this path.
    std::string counted(const std::string& part) {
        std::vector<testenv::Record> out;
        for (const auto& record : gate().trace()) {
            if (record.path.find(part) != std::string::npos) out.push_back(record);
        }
        return to_string(count(out));
    }
};

}  // namespace zkrecipes::test
