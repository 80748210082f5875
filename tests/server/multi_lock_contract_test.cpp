#include <zkrecipes/multi_lock.hpp>

#include "server/lock_contract.hpp"

namespace zkrecipes::test {
namespace {

/// Three paths as one: a mutex, one side of a read-write lock, and a share that nobody else minds.
struct MultiCase {
    using Lock = MultiLock;
    static constexpr bool reentrant = true;
    static constexpr bool one_place = false;
    static Lock make(Session& session, const std::string& path) {
        return {session,
                {{path}, {path + "-alone", MultiLock::As::exclusive}, {path + "-shared", MultiLock::As::shared}}};
    }
    static std::size_t nodes(const std::vector<std::string>& children) { return children.size(); }
};

using Multi = ::testing::Types<ContractOf<MultiCase, OnThreads>, ContractOf<MultiCase, OnFibers>>;
INSTANTIATE_TYPED_TEST_SUITE_P(MultiLock, LockContract, Multi);

}  // namespace
}  // namespace zkrecipes::test
