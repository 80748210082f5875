#include <zkrecipes/read_write_lock.hpp>

#include "server/lock_contract.hpp"

namespace zkrecipes::test {
namespace {

/// The lock held alone: a mutex.
struct AloneCase {
    using Lock = ReadWriteLock;
    static constexpr bool reentrant = true;
    static constexpr bool one_place = true;
    static Lock make(Session& session, const std::string& path) { return {session, path}; }
    static std::size_t nodes(const std::vector<std::string>& children) { return children.size(); }
};

using Alone = ::testing::Types<ContractOf<AloneCase, OnThreads>, ContractOf<AloneCase, OnFibers>>;
INSTANTIATE_TYPED_TEST_SUITE_P(ReadWriteLock, LockContract, Alone);

}  // namespace
}  // namespace zkrecipes::test
