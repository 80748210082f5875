// Our side of the pages in docs/coming_from: each function is the code of one page. `scripts/coming-from` runs them
// beside the code of the peers.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>

using namespace std::chrono_literals;

namespace {

void make_report(const std::stop_token& lost) {
    if (lost.stop_requested() || std::system("./make-report") != 0) throw std::runtime_error("make-report failed");
}

void save(zkrecipes::FencingToken token) {
    if (token <= 0) throw std::runtime_error("a token is missing");
    make_report({});
}

void like_curator(const std::string& hosts) {
    // [curator]
    zkrecipes::Session session(hosts);
    zkrecipes::ExclusiveMutex lock(session, "/locks/report");

    if (auto grant = lock.try_acquire_for(30s)) {
        make_report(grant.lost());  // ends early on a loss
    }                               // the destructor of the grant releases the lock
    // [/curator]
}

void like_kazoo(const std::string& hosts) {
    // [kazoo]
    zkrecipes::Session session(hosts);
    zkrecipes::LockOptions options;
    options.dialect = zkrecipes::Dialect::kazoo;
    zkrecipes::ExclusiveMutex lock(session, "/locks/report", options);

    const std::lock_guard guard(lock);
    make_report(lock.lost());
    // [/kazoo]
}

void like_redis(const std::string& hosts) {
    // [redis]
    zkrecipes::Session session({.hosts = hosts, .timeout = 30s});
    zkrecipes::ExclusiveMutex lock(session, "/locks/report");

    const auto grant = lock.acquire();
    make_report(grant.lost());
    // [/redis]
}

void like_hazelcast(const std::string& hosts) {
    zkrecipes::Session session(hosts);
    // [hazelcast]
    zkrecipes::ExclusiveMutex lock(session, "/locks/report");

    if (auto grant = lock.try_acquire_for(30s)) {
        save(grant.token());
    }  // here, the grant releases the lock
    // [/hazelcast]
}

}  // namespace

int main(int argc, char** argv) {
    const std::map<std::string, void (*)(const std::string&)> sides = {
        {"curator", like_curator}, {"kazoo", like_kazoo}, {"redis", like_redis}, {"hazelcast", like_hazelcast}};
    const auto side = argc == 3 ? sides.find(argv[1]) : sides.end();
    if (side == sides.end()) {
        std::fprintf(stderr, "usage: %s curator|kazoo|redis|hazelcast HOSTS\n", argv[0]);
        return 64;
    }
    try {
        side->second(argv[2]);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
