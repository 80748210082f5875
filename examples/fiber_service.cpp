// A service that works on thousands of accounts at once: each request is a fiber, each account has a lock of its own in
// ZooKeeper, so that several instances of the service can share the accounts. One session and a fixed number of threads
// serve all of it, and only the accounts that are being worked on take up memory.
//
//     fiber_service HOSTS [REQUESTS [ACCOUNTS [SESSION_TIMEOUT_MS]]]
#include <algorithm>
#include <atomic>
#include <boost/fiber/fiber.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/fenced_register.hpp>
#include <zkrecipes/lock_registry.hpp>
#include <zkrecipes/session.hpp>

namespace {

using zkrecipes::Deadline;

// The number of requests that are handled at the same time. One session carries several thousand of them, until calls
// throw Errc::budget_exceeded. With fewer at a time, each one waits less for the servers.
constexpr int kAtOnce = 1000;

/// In place of a database that checks tokens: refuses a holder with a smaller token than the largest one seen so far.
class Ledger {
public:
    explicit Ledger(int accounts) : balances_(static_cast<std::size_t>(accounts)) {}

    bool add(int account, int amount, zkrecipes::FencingToken token) {
        return fence_.run_exclusive(std::to_string(account), token,
                                    [&] { balances_[static_cast<std::size_t>(account)] += amount; });
    }
    int total() const {
        int sum = 0;
        for (const auto& balance : balances_) sum += balance;
        return sum;
    }

private:
    zkrecipes::FencedRegister fence_;
    std::vector<std::atomic<int>> balances_;
};

/// One request. False: it could not be done in time, and nothing was changed.
bool handle(zkrecipes::LockRegistry& locks, Ledger& ledger, int account) {
    const Deadline deadline(std::chrono::seconds(60));
    auto lock = locks.get("account-" + std::to_string(account));
    while (!deadline.is_passed()) {
        const zkrecipes::Grant grant = lock.try_acquire_until(deadline);  // only this fiber waits
        if (!grant) return false;
        // The lock was lost, for example because the process was stopped for too long. Nothing was written: try again.
        if (grant.held() && ledger.add(account, 1, grant.token())) return true;
    }
    return false;
}

/// Every tenth request is for one of a few accounts that everybody wants.
int account_of(int request, int accounts) {
    return request % 10 == 0 ? request / 10 % std::min(10, accounts) : request % accounts;
}

}  // namespace

int main(int argc, char** argv) {
    const char* const hosts = argc > 1 ? argv[1] : "127.0.0.1:2181";
    const int requests = argc > 2 ? std::atoi(argv[2]) : 20'000;
    const int accounts = argc > 3 ? std::max(1, std::atoi(argv[3])) : 5000;
    try {
        zkrecipes::SessionOptions options;
        options.hosts = hosts;
        if (argc > 4) options.timeout = std::chrono::milliseconds(std::atoi(argv[4]));
        zkrecipes::Session session(options);
        if (!session.wait_connected(std::chrono::seconds(20))) {
            std::fprintf(stderr, "no server of %s answered\n", hosts);
            return 69;
        }
        zkrecipes::LockRegistry locks(session, "/accounts");
        Ledger ledger(accounts);
        int next = 0, done = 0, refused = 0;  // used by the fibers of one thread only, so they need no mutex
        std::size_t most_keys = 0;
        std::vector<boost::fibers::fiber> fibers;
        for (int i = 0; i < std::min(kAtOnce, requests); ++i) {
            fibers.emplace_back([&] {
                while (next < requests) {
                    try {
                        handle(locks, ledger, account_of(next++, accounts)) ? ++done : ++refused;
                    } catch (const zkrecipes::Error& error) {  // must not leave a fiber
                        std::fprintf(stderr, "%s\n", error.what());
                        ++refused;
                    }
                    most_keys = std::max(most_keys, locks.size());
                    if (done == 100) std::puts("serving"), std::fflush(stdout);
                }
            });
        }
        for (boost::fibers::fiber& fiber : fibers) fiber.join();
        std::printf("%d requests for %d accounts done, %d refused, %zu locks in memory at most\n", done, accounts,
                    refused, most_keys);
        return done == requests && ledger.total() == requests ? 0 : 1;
    } catch (const zkrecipes::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
