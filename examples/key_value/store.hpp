#pragma once

#include <mutex>
#include <stop_token>
#include <string>

#include <zkrecipes/grant.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/transaction.hpp>

#include "protocol.hpp"

namespace key_value {

/// Executes the requests of clients, as long as this process leads. The data are in ZooKeeper:
///
///     <root>/data/<key>        the value
///     <root>/clients/<client>  the NUMBER of the client's last write, and the answer to it
///
/// A write changes both nodes in one transaction that requires the leadership. A client may send a write again, because
/// the answer or the leader was lost. If the record then contains the NUMBER of this write, the write has happened, and
/// the record contains the answer. Otherwise the write has not happened. So no write happens twice. This needs three
/// rules. Without any one of them, an acknowledged write could be lost or could happen twice:
///
/// 1. The store reads the record while this process leads (read_node within the grant). So the record contains all
///    writes of former leaders, and all earlier writes of this one, also those whose outcome it does not know.
/// 2. Between this read and the write, nothing else is written. Other processes cannot write, because the transaction
///    requires the leadership. Other threads cannot write, because of the mutex.
/// 3. A client numbers its writes, and sends the next write only when it has the answer to the last one.
///
/// Safe for concurrent use.
class Store {
public:
    /// The destructor releases the leadership.
    Store(zkrecipes::Session& session, std::string root, zkrecipes::Grant leadership);

    /// Creates the directories if they are missing. Throws Error as Transaction::commit does.
    void prepare();

    bool leads() const { return leadership_.held(); }
    std::stop_token lost() const { return leadership_.lost(); }

    /// The answer to any request except "peek". Blocks. Throws Error if the request was not executed, or if this is
    /// not known. In both cases, the client sends the request again.
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
    // Held from the read of the record to the answer to the transaction. One mutex for each key and client would also
    // be correct. If requests ran on fibers, it would have to be a mutex of Boost.Fiber.
    std::mutex writing_;
};

/// The answer to "peek", from any process: the value that the connected ZooKeeper server has.
std::string peek(zkrecipes::Session& session, const std::string& root, const Request& request);

/// A transaction that happens only while this process leads.
zkrecipes::Transaction guarded(zkrecipes::Session& session, const zkrecipes::Grant& leadership);

}  // namespace key_value
