// A unit test of somebody who uses the installed zkrecipes::testing: a server in memory, and a lock that is lost.
#include <chrono>
#include <cstdio>

#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>
#include <zkrecipes/testing.hpp>

int main() {
    using namespace std::chrono_literals;
    zkrecipes::testkit::FakeServer server(zkrecipes::testkit::Time::manual);
    zkrecipes::Session session = server.session();
    zkrecipes::ExclusiveMutex mutex(session, "/consumer/tested");
    const zkrecipes::Grant grant = mutex.acquire();
    server.advance(1h);
    const bool held = grant.held();
    server.lose(grant);
    const bool lost = !grant.held() && grant.lost().stop_requested();
    try {
        server.session(zkrecipes::SessionOptions{.timeout = 1ms});
        return 1;
    } catch (const zkrecipes::Error& error) {
        // By its type across the border of the shared library.
        if (error.errc() != zkrecipes::Errc::bad_option) return 1;
    }
    std::puts(held && lost ? "held for an hour, then lost" : "not as it should be");
    return held && lost ? 0 : 1;
}
