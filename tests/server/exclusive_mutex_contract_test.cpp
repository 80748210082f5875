#include "server/lock_contract.hpp"

namespace zkrecipes::test {
namespace {

struct ExclusiveCase {
    using Lock = ExclusiveMutex;
    static constexpr bool reentrant = true;
    static constexpr bool one_place = true;
    static Lock make(Session& session, const std::string& path) { return {session, path}; }
    static std::size_t nodes(const std::vector<std::string>& children) { return children.size(); }
};

using Exclusive = ::testing::Types<ContractOf<ExclusiveCase, OnThreads>, ContractOf<ExclusiveCase, OnFibers>>;
INSTANTIATE_TYPED_TEST_SUITE_P(ExclusiveMutex, LockContract, Exclusive);

}  // namespace
}  // namespace zkrecipes::test
