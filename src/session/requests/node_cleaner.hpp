#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

#include "client/client.hpp"
#include "session/common/backoff.hpp"

namespace zkrecipes::internal {

/// Why nodes are deleted: their hold was given back, or whatever else; or their call ended without it.
enum class DeletedFor : std::uint8_t { release, giving_up };

/// Deletes what we have made, or may have made, until it is gone or its session is over. Nobody can cancel that.
///
/// A node whose name is known is deleted by it; several that were held as one by one transaction, and each by itself
/// when that is refused (one of them is gone already, or one may not be deleted). Of a create whose answer was lost
/// only the directory and a unique part of the name are known: sync (without it the server may not yet know of the
/// create), list, compare the owner, delete. Own pace, own back-off; nothing is sent while not connected. Pure but for
/// calling `done`.
class NodeCleaner {
public:
    using Done = std::function<void(bool gone)>;  // false: the session ended first
    using Ticket = std::uint64_t;

    class Port {
    public:
        virtual ~Port() = default;
        virtual void cleaner_remove(const std::string& path, Ticket ticket) = 0;  // answer: on_removed
        virtual void cleaner_remove_all(const std::vector<std::string>& paths, Ticket ticket) = 0;  // on_removed_all
        virtual void cleaner_sync(const std::string& path, Ticket ticket) = 0;                      // answer: on_synced
        virtual void cleaner_children(const std::string& path, Ticket ticket) = 0;  // answer: on_children
        virtual void cleaner_exists(const std::string& path, Ticket ticket) = 0;    // answer: on_exists
        virtual bool cleaner_can_send() const = 0;
        virtual Instant cleaner_now() const = 0;
        virtual std::uint64_t cleaner_random() = 0;
        /// A definite refusal, for the n-th time in a row for this node.
        virtual void cleaner_refused(const std::string& path, const char* operation, Rc rc, std::uint64_t n) = 0;
    };

    explicit NodeCleaner(Port& port) : port_(port) {}

    void add_node(std::string path, Done done, DeletedFor why = {});
    void add_nodes(std::vector<std::string> paths, Done done, DeletedFor why = {});  // at least one
    /// A name that others may use, too: sync, compare the owner, delete.
    void add_owned(std::string path, std::int64_t owner, Done done);
    void add_identity(std::string directory, std::string name_prefix, std::int64_t owner, Done done,
                      DeletedFor why = {});

    void on_removed(Ticket ticket, Rc rc);
    void on_removed_all(Ticket ticket, Rc rc);
    void on_synced(Ticket ticket, Rc rc);
    void on_children(Ticket ticket, Rc rc, const std::vector<std::string>& names);
    void on_exists(Ticket ticket, Rc rc, std::int64_t owner);

    /// Connected, or the time of wake_at() has come.
    void go_on();
    Instant wake_at() const noexcept { return sleeping_.empty() ? Instant::max() : sleeping_.begin()->first; }
    /// The session is over, and its ephemeral nodes with it.
    void session_over();
    std::size_t pending() const noexcept { return jobs_.size(); }
    /// How many jobs are DeletedFor::giving_up and wait for an answer. One that was answered in vain does not count: it
    /// is repeated at its own pace, and is in nobody's way on the connection.
    std::size_t given_up() const noexcept { return given_up_; }

private:
    // So many requests at the same time at most; ten thousand waiters may be abandoned at once.
    static constexpr std::size_t kInFlight = 256;

    struct Job {
        ExponentialBackoff pace{std::chrono::milliseconds(20), std::chrono::seconds(5)};
        std::string directory;           // identity jobs
        std::string name_prefix;         // identity jobs
        std::string owned;               // owned jobs: the one node
        std::int64_t owner = 0;          // identity and owned jobs
        std::vector<std::string> nodes;  // to be deleted, the last one first; identity: to be examined
        bool by_identity = false;        // the owner counts: identity and owned jobs
        bool together = false;           // all of `nodes` at once
        bool owner_checked = false;      // of nodes.back()
        std::uint64_t refusals = 0;
        DeletedFor why{};
        bool in_vain = false;  // answered, and not done
        Done done;
    };
    using JobId = std::uint64_t;

    JobId add(Job job);
    void run(JobId id);
    Job* answered(Ticket ticket, JobId& id);
    static bool counts(const Job& job) noexcept { return job.why == DeletedFor::giving_up && !job.in_vain; }
    void again(JobId id, Job& job, Rc rc, const std::string& path, const char* operation);
    void next_node(JobId id, Job& job);
    void split(JobId id);
    void finish(JobId id, bool gone);
    void pump();

    Port& port_;
    using Jobs = std::unordered_map<JobId, Job>;
    Jobs jobs_;
    Jobs::node_type spare_;  // of the job that ended last: the next one needs no memory
    boost::unordered_flat_map<Ticket, JobId> tickets_;
    std::deque<JobId> runnable_;
    std::multimap<Instant, JobId> sleeping_;
    std::size_t given_up_ = 0;
    JobId last_job_ = 0;
    Ticket last_ticket_ = 0;
};

}  // namespace zkrecipes::internal
