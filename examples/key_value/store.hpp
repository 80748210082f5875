#pragma once

#include <mutex>
#include <stop_token>
#include <string>

#include <zkrecipes/grant.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/transaction.hpp>

#include "protocol.hpp"

namespace key_value {

/// What a leader does for its clients, for as long as it leads. The data are in ZooKeeper:
///
///     <root>/data/<key>        the value
///     <root>/clients/<client>  the NUMBER of the client's last write, and what it was answered
///
/// A write changes both in one transaction, guarded by the leadership. So for every write that is asked again, because
/// its answer was lost, or the leader was, there is one of two states: the record has its NUMBER, then it has happened
/// and the answer is in the record; or it has not, then nothing has happened. Nobody has to guess, and nothing happens
/// twice. It needs three things, and each of them is here because without it there is a history in which an
/// acknowledged write is lost or counts twice:
///
/// 1. The record is read at a point at which we lead (read_node within the grant), so that all that former leaders
/// wrote
///    is in it, and all that this one wrote before, of which it may not know whether it has happened.
/// 2. Between this read and the write nobody else writes: no other process, because the write happens while we lead or
///    not at all; no other thread, because of the mutex.
/// 3. A client numbers its writes, and has one of them under way at a time.
///
/// Safe for concurrent use.
class Store {
public:
    /// Whoever uses the store last resigns with it.
    Store(zkrecipes::Session& session, std::string root, zkrecipes::Grant leadership);

    /// Makes the directories where they are missing. Throws Error as Transaction::commit does.
    void prepare();

    bool leads() const { return leadership_.held(); }
    std::stop_token lost() const { return leadership_.lost(); }

    /// The answer to anything but "peek". Blocks. Throws Error: nothing has happened, or it is not known whether it
    /// has; either way the client asks again.
    std::string answer(const Request& request);

private:
    std::string hello(const Request& request);
    std::string bye(const Request& request);
    std::string get(const Request& request) const;
    std::string write(const Request& request);

    std::string data_path(const Request& request) const { return root_ + "/data/" + request.key; }
    std::string record_path(const Request& request) const { return root_ + "/clients/" + request.client; }

    zkrecipes::Session& session_;
    const std::string root_;
    const zkrecipes::Grant leadership_;
    // One write at a time, from the read of the record to the answer of the transaction. A mutex for each key and
    // client would do as well; it would have to be one of Boost.Fiber's if requests were fibers.
    std::mutex writing_;
};

/// What any process may answer to "peek": as much as the server that it is connected to knows.
std::string peek(zkrecipes::Session& session, const std::string& root, const Request& request);

/// A transaction that happens while we lead, or not at all.
zkrecipes::Transaction guarded(zkrecipes::Session& session, const zkrecipes::Grant& leadership);

}  // namespace key_value
