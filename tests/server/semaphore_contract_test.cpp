#include <zkrecipes/semaphore_mutex.hpp>

#include "server/lock_contract.hpp"

namespace zkrecipes::test {
namespace {

struct SemaphoreMutexCase {
    using Lock = SemaphoreMutex;
    static constexpr bool reentrant = false;
    static constexpr bool one_place = false;
    static Lock make(Session& session, const std::string& path) { return {session, path}; }
    static std::vector<std::string> directories(const std::string& path) { return {path + "/locks", path + "/leases"}; }
};

using OfOneLease =
    ::testing::Types<ContractOf<SemaphoreMutexCase, OnThreads>, ContractOf<SemaphoreMutexCase, OnFibers>>;
INSTANTIATE_TYPED_TEST_SUITE_P(SemaphoreMutex, LockContract, OfOneLease);

}  // namespace
}  // namespace zkrecipes::test
