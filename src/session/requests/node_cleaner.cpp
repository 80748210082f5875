#include "session/requests/node_cleaner.hpp"

#include <memory>
#include <utility>

namespace zkrecipes::internal {

void NodeCleaner::add_node(std::string path, Done done, DeletedFor why) {
    Job job;
    job.why = why;
    job.nodes.push_back(std::move(path));
    job.done = std::move(done);
    run(add(std::move(job)));
}

void NodeCleaner::add_nodes(std::vector<std::string> paths, Done done, DeletedFor why) {
    Job job;
    job.why = why;
    job.together = paths.size() > 1;
    job.nodes = std::move(paths);
    job.done = std::move(done);
    run(add(std::move(job)));
}

void NodeCleaner::add_owned(std::string path, std::int64_t owner, Done done) {
    Job job;
    job.by_identity = true;
    job.owned = std::move(path);
    job.directory = job.owned;  // what is synced
    job.owner = owner;
    job.done = std::move(done);
    run(add(std::move(job)));
}

void NodeCleaner::add_identity(std::string directory, std::string name_prefix, std::int64_t owner, Done done,
                               DeletedFor why) {
    Job job;
    job.why = why;
    job.by_identity = true;
    job.directory = std::move(directory);
    job.name_prefix = std::move(name_prefix);
    job.owner = owner;
    job.done = std::move(done);
    run(add(std::move(job)));
}

NodeCleaner::JobId NodeCleaner::add(Job job) {
    const JobId id = ++last_job_;
    if (counts(job)) ++given_up_;
    if (spare_.empty()) {
        jobs_.emplace(id, std::move(job));
    } else {
        spare_.key() = id;
        spare_.mapped() = std::move(job);
        jobs_.insert(std::move(spare_));
    }
    return id;
}

void NodeCleaner::run(JobId id) {
    if (!port_.cleaner_can_send() || tickets_.size() >= kInFlight) {
        runnable_.push_back(id);
        return;
    }
    const Ticket ticket = ++last_ticket_;
    tickets_.emplace(ticket, id);
    Job& job = jobs_.at(id);
    if (job.together) return port_.cleaner_remove_all(job.nodes, ticket);
    if (!job.nodes.empty()) {
        if (job.by_identity && !job.owner_checked) return port_.cleaner_exists(job.nodes.back(), ticket);
        return port_.cleaner_remove(job.nodes.back(), ticket);
    }
    port_.cleaner_sync(job.directory, ticket);
}

NodeCleaner::Job* NodeCleaner::answered(Ticket ticket, JobId& id) {
    const auto found = tickets_.find(ticket);
    if (found == tickets_.end()) return nullptr;  // the session ended meanwhile
    id = found->second;
    tickets_.erase(found);
    return &jobs_.at(id);
}

void NodeCleaner::again(JobId id, Job& job, Rc rc, const std::string& path, const char* operation) {
    if (counts(job)) --given_up_;
    job.in_vain = true;
    // Meanwhile our node may be deleted, and another session's made under the same name.
    job.owner_checked = false;
    switch (meaning_or_failed(rc)) {
        case Meaning::unknown:
        case Meaning::session_over:
            // What was done or not shows later: deleting twice is harmless, and a search starts again with a sync.
            if (job.by_identity) job.nodes.clear();
            [[fallthrough]];
        case Meaning::not_done:
            // Goes on when connected again; after a pause where the connection still stands.
            if (!port_.cleaner_can_send()) {
                runnable_.push_back(id);
                break;
            }
            sleeping_.emplace(port_.cleaner_now() + job.pace.next(port_.cleaner_random()), id);
            break;
        default:
            // No permission, mostly. It may be given later, and the node ends with the session anyway: try on, slowly.
            port_.cleaner_refused(path, operation, rc, ++job.refusals);
            sleeping_.emplace(
                port_.cleaner_now() + std::chrono::milliseconds(500) + job.pace.next(port_.cleaner_random()), id);
            break;
    }
    pump();
}

void NodeCleaner::on_removed(Ticket ticket, Rc rc) {
    JobId id = 0;
    Job* job = answered(ticket, id);
    if (job == nullptr) return;
    const bool gone = rc == Rc::no_node;
    if (rc == Rc::ok || gone) return next_node(id, *job);
    again(id, *job, rc, job->nodes.back(), "delete");
}

void NodeCleaner::on_removed_all(Ticket ticket, Rc rc) {
    JobId id = 0;
    Job* job = answered(ticket, id);
    if (job == nullptr) return;
    switch (meaning_or_failed(rc)) {
        case Meaning::done: return finish(id, true);
        case Meaning::refused:
        case Meaning::failed: return split(id);  // nothing was deleted; what stands in the way of one may not of others
        default: return again(id, *job, rc, job->nodes.front(), "delete");
    }
}

/// Each node is a job of its own from now on; the last one to end is the end of all.
void NodeCleaner::split(JobId id) {
    auto whole = jobs_.extract(id);
    if (counts(whole.mapped())) --given_up_;
    struct Rest {
        std::size_t open;
        bool all_gone;
        Done done;
    };
    const auto nodes = std::move(whole.mapped().nodes);
    const auto rest = std::make_shared<Rest>(Rest{nodes.size(), true, std::move(whole.mapped().done)});
    for (const auto& node : nodes) {
        add_node(
            node,
            [rest](bool gone) {
                rest->all_gone = rest->all_gone && gone;
                if (--rest->open == 0 && rest->done) rest->done(rest->all_gone);
            },
            whole.mapped().why);
    }
    pump();
}

void NodeCleaner::next_node(JobId id, Job& job) {
    job.nodes.pop_back();
    job.owner_checked = false;
    job.pace.reset();
    if (job.nodes.empty()) return finish(id, true);
    run(id);
}

void NodeCleaner::on_synced(Ticket ticket, Rc rc) {
    JobId id = 0;
    Job* job = answered(ticket, id);
    if (job == nullptr) return;
    if (rc == Rc::no_node) return finish(id, true);
    if (rc != Rc::ok) return again(id, *job, rc, job->directory, "sync");
    if (!job->owned.empty()) {
        job->nodes.assign(1, job->owned);
        job->owner_checked = false;
        return run(id);
    }
    // Directly after the sync, whatever else waits: only a list on the same connection reflects it. If the connection
    // breaks in between, the list is not answered with ok, or was sent on the next connection, whose server is not
    // older.
    const Ticket next = ++last_ticket_;
    tickets_.emplace(next, id);
    port_.cleaner_children(job->directory, next);
}

void NodeCleaner::on_children(Ticket ticket, Rc rc, const std::vector<std::string>& names) {
    JobId id = 0;
    Job* job = answered(ticket, id);
    if (job == nullptr) return;
    if (rc == Rc::no_node) return finish(id, true);
    if (rc != Rc::ok) return again(id, *job, rc, job->directory, "list");
    const std::string base = job->directory == "/" ? "/" : job->directory + "/";
    for (const auto& name : names) {
        if (name.starts_with(job->name_prefix)) job->nodes.push_back(base + name);
    }
    if (job->nodes.empty()) return finish(id, true);
    job->owner_checked = false;
    run(id);
}

void NodeCleaner::on_exists(Ticket ticket, Rc rc, std::int64_t owner) {
    JobId id = 0;
    Job* job = answered(ticket, id);
    if (job == nullptr) return;
    if (rc == Rc::no_node) return next_node(id, *job);
    if (rc != Rc::ok) return again(id, *job, rc, job->nodes.back(), "exists");
    // Another session's node is not ours to delete; it ends with that session.
    if (owner != job->owner) return next_node(id, *job);
    job->owner_checked = true;
    run(id);
}

void NodeCleaner::finish(JobId id, bool gone) {
    auto node = jobs_.extract(id);
    if (counts(node.mapped())) --given_up_;
    const Done done = std::exchange(node.mapped().done, nullptr);
    spare_ = std::move(node);
    if (done) done(gone);
    pump();
}

void NodeCleaner::pump() {
    while (!runnable_.empty() && port_.cleaner_can_send() && tickets_.size() < kInFlight) {
        const JobId id = runnable_.front();
        runnable_.pop_front();
        run(id);
    }
}

void NodeCleaner::go_on() {
    const Instant now = port_.cleaner_now();
    while (!sleeping_.empty() && sleeping_.begin()->first <= now) {
        runnable_.push_back(sleeping_.begin()->second);
        sleeping_.erase(sleeping_.begin());
    }
    pump();
}

void NodeCleaner::session_over() {
    auto jobs = std::exchange(jobs_, {});
    given_up_ = 0;
    tickets_.clear();
    runnable_.clear();
    sleeping_.clear();
    for (auto& [id, job] : jobs) {
        if (job.done) job.done(false);
    }
}

}  // namespace zkrecipes::internal
