// Several workers increase a counter in ZooKeeper, each under the lock. A worker that was stopped for a while and goes
// on too late writes nothing. If an answer is lost, the library finds out what happened. In the end, the lock goes to
// another process, which finishes the work and releases the lock.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/transaction.hpp>

namespace {

using namespace std::chrono_literals;
using zkrecipes::Deadline;
using zkrecipes::Errc;
using zkrecipes::Error;
using zkrecipes::Grant;
using zkrecipes::Transaction;

void prepare(zkrecipes::Session& session) {
    zkrecipes::ExclusiveMutex mutex(session, "/counter/lock");
    const Grant grant = mutex.acquire();
    for (const auto& [path, data] : {std::pair{"/counter/value", "0"}, std::pair{"/counter/commits", ""}}) {
        try {
            Transaction(grant).create(path, data).commit();
        } catch (const Error& error) {
            if (error.errc() != Errc::node_exists) throw;
        }
    }
}

bool raise(zkrecipes::Session& session) {
    zkrecipes::ExclusiveMutex mutex(session, "/counter/lock");
    const Grant grant = mutex.try_acquire_for(60s);
    if (!grant) return false;
    // [transaction]
    const auto counter =
        zkrecipes::read_node(session, "/counter/value", grant, 10s);  // contains what earlier holders wrote
    const std::string next = std::to_string(std::stoi(counter->data) + 1);
    Transaction transaction(grant);  // happens while the grant is held, or not at all
    transaction.set("/counter/value", next, counter->version).idempotent_in("/counter/commits");
    try {
        return transaction.try_commit_for(10s).has_value();
    } catch (const Error& error) {
        if (error.errc() == Errc::lock_lost) return false;  // nothing was written; another client goes on
        throw;
    }
    // [/transaction]
}

/// In place of another process, which would get `text` on its command line.
void finish_elsewhere(const std::string& hosts, const std::string& text) {
    // [bearer]
    zkrecipes::Session session(hosts);
    const auto sequencer = zkrecipes::Sequencer::parse(text);
    if (!zkrecipes::still_held(session, sequencer, 10s)) return;
    Transaction(session, sequencer).set("/counter/value", "done").commit();
    zkrecipes::release_held(session, sequencer, 10s);
    // [/bearer]
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const std::string hosts = argc > 1 ? argv[1] : "zk1:2181,zk2:2181,zk3:2181";
        zkrecipes::Session session(hosts);
        prepare(session);
        int raised[3] = {};
        {
            std::vector<std::jthread> workers;
            for (int& mine : raised) {
                workers.emplace_back([&] {
                    for (int i = 0; i < 10; ++i) mine += raise(session);
                });
            }
        }
        const auto value = zkrecipes::read_node(session, "/counter/value", zkrecipes::Fresh::yes, 10s);
        std::printf("raised %d times, the counter says %s\n", raised[0] + raised[1] + raised[2], value->data.c_str());

        zkrecipes::ExclusiveMutex mutex(session, "/counter/lock");
        const Grant grant = mutex.acquire();
        // [holder]
        const zkrecipes::Sequencer sequencer(grant, zkrecipes::Sequencer::Bearer::may_release);
        finish_elsewhere(hosts, sequencer.text());
        // [/holder]
        const auto last = zkrecipes::read_node(session, "/counter/value", zkrecipes::Fresh::yes, 10s);
        std::printf("finished elsewhere: %s\n", last->data.c_str());
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
