#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "client/client.hpp"

namespace zkrecipes::internal {

class ZkHandle;
struct ZkMultiBuffers;  // what the C client reads and writes while a multi is on its way

/// One request, from the call until its answer has been given and the C client has forgotten it.
struct ZkRequest {
    enum class Kind { create, remove, exists, get, set, children, multi, sync, remove_watches };
    using Done = std::variant<Client::VoidDone, Client::StatDone, Client::CreateDone,  // GetDone is the same type
                              Client::ChildrenDone, Client::MultiDone>;
    using List = std::list<ZkRequest>;

    ZkRequest(Kind kind_of, std::string server_path, Done when_done);
    ~ZkRequest();
    ZkRequest(const ZkRequest&) = delete;
    ZkRequest& operator=(const ZkRequest&) = delete;

    /// What it takes on the wire, not less; the servers cut a connection that sends more than jute.maxbuffer.
    std::size_t wire_bytes() const;
    /// Hands it to the C client. Returns its code: anything but ok means that it was not taken.
    Rc send(void* zookeeper_handle);
    /// Runs `done` with the answer.
    void give();
    /// Runs `done` without a result.
    void fail(Rc rc);

    const Kind kind;
    const std::string path;
    Done done;
    std::string data;           // create, set
    std::vector<Acl> acl;       // create
    CreateMode mode{};          // create
    std::int32_t version = -1;  // remove, set
    bool watch = false;         // exists, get, children
    std::vector<MultiOp> ops;   // multi
    std::unique_ptr<ZkMultiBuffers> buffers;

    std::uint64_t number = 0;  // in the order of the calls; 0: urgent
    bool urgent = false;       // overtakes those that wait and are not
    std::size_t weight = 1;    // while it is sent: how much of the window it takes
    std::size_t children = 0;  // once answered: how many children its node has

    // The answer.
    Rc rc = Rc::ok;
    NodeStat stat{};
    std::string text;                  // create: the path; get: the data
    std::vector<std::string> names;    // children
    std::vector<MultiResult> results;  // multi

    ZkHandle* handle = nullptr;
    List::iterator self;  // in the list of the handle that it is on
    Rc fate = Rc::ok;     // why it was refused
    bool keep = false;    // refused by the C client, which may nevertheless name it once more
};

}  // namespace zkrecipes::internal
