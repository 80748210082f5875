// Transfers between accounts. Each account has a lock; a transfer locks both accounts as one, in any order, and shares
// the lock of the table of rates with the other transfers.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/session.hpp>

namespace {

using zkrecipes::MultiLock;

/// In a real service a database; it would refuse tokens smaller than the largest it has seen for the account.
long balance[3] = {1000, 1000, 1000};

bool transfer(zkrecipes::Session& session, int from, int to, long amount) {
    const auto account = [](int number) { return "/accounts/" + std::to_string(number); };
    MultiLock lock(session, {{account(from)}, {account(to)}, {"/rates", MultiLock::As::shared}});
    const zkrecipes::Grant grant = lock.try_acquire_for(std::chrono::seconds(60));
    if (!grant.held()) return false;  // another client had one of the locks all the time: nothing was locked
    balance[from] -= amount;
    balance[to] += amount;
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        zkrecipes::Session session(argc > 1 ? argv[1] : "zk1:2181,zk2:2181,zk3:2181");
        int done[3] = {};
        {
            std::vector<std::jthread> tellers;
            for (int teller = 0; teller < 3; ++teller) {
                tellers.emplace_back([&, teller] {
                    // In a circle, each against the next: one lock after the other would deadlock.
                    for (int i = 0; i < 10; ++i)
                        done[teller] += transfer(session, teller, (teller + 1) % 3, 5 + teller);
                });
            }
        }
        std::printf("%d transfers, %ld in all accounts\n", done[0] + done[1] + done[2],
                    balance[0] + balance[1] + balance[2]);
        return 0;
    } catch (const zkrecipes::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
