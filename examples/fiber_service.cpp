// A service that works on many accounts at once: each request is a fiber, each account has a lock of its own in
// ZooKeeper, so that several instances of the service can share the accounts. One session and a fixed number of threads
// serve all of it.
//
//     fiber_service HOSTS [REQUESTS]
#include <boost/fiber/fiber.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/session.hpp>

namespace {

constexpr int kAccounts = 5;

/// What stands for a database that checks tokens: it refuses a holder that came before the last one that it has seen.
class Ledger {
public:
    bool add(int account, int amount, zkrecipes::FencingToken token) {
        const std::lock_guard lock(mutex_);
        Row& row = rows_[account];
        if (token < row.fence) return false;
        row.fence = token;
        row.balance += amount;
        return true;
    }
    int total() const {
        const std::lock_guard lock(mutex_);
        int sum = 0;
        for (const auto& [account, row] : rows_) sum += row.balance;
        return sum;
    }

private:
    struct Row {
        int balance = 0;
        zkrecipes::FencingToken fence = 0;
    };
    mutable std::mutex mutex_;  // guards rows_
    std::map<int, Row> rows_;
};

/// One request. False: it could not be done in time, and nothing was changed.
bool handle(zkrecipes::Session& session, Ledger& ledger, int account) {
    // An ExclusiveMutex is a name, not a connection: making one costs nothing.
    zkrecipes::ExclusiveMutex mutex(session, "/accounts/" + std::to_string(account));
    const zkrecipes::Grant grant = mutex.acquire_before(std::chrono::seconds(20));  // suspends this fiber alone
    return grant && grant.held() && ledger.add(account, 1, grant.token());
}

}  // namespace

int main(int argc, char** argv) {
    const char* hosts = argc > 1 ? argv[1] : "127.0.0.1:2181";
    const int requests = argc > 2 ? std::atoi(argv[2]) : 200;
    try {
        zkrecipes::Session session{std::string(hosts)};
        if (!session.wait_connected(std::chrono::seconds(20))) {
            std::fprintf(stderr, "no server of %s answered\n", hosts);
            return 69;
        }
        Ledger ledger;
        int refused = 0;
        std::vector<boost::fibers::fiber> fibers;
        for (int request = 0; request < requests; ++request) {
            fibers.emplace_back([&, request] {
                try {
                    if (!handle(session, ledger, request % kAccounts)) ++refused;
                } catch (const zkrecipes::Error& error) {  // must not leave a fiber
                    std::fprintf(stderr, "%s\n", error.what());
                    ++refused;
                }
            });
        }
        for (boost::fibers::fiber& fiber : fibers) fiber.join();
        std::printf("%d requests done, %d refused\n", ledger.total(), refused);
        return ledger.total() == requests ? 0 : 1;
    } catch (const zkrecipes::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
