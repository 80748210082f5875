#include "client/wire_size.hpp"

namespace zkrecipes::internal {
namespace {

constexpr std::size_t kHeaderBytes = 64;  // of a request, and of each part of a multi

}  // namespace

std::size_t request_wire_bytes(const std::string& path, const std::string& data, const std::vector<Acl>& acl) {
    std::size_t bytes = kHeaderBytes + path.size() + data.size();
    for (const Acl& entry : acl) bytes += 12 + entry.scheme.size() + entry.id.size();
    return bytes;
}

std::size_t multi_wire_bytes(const std::vector<MultiOp>& ops) {
    std::size_t bytes = kHeaderBytes;
    for (const MultiOp& op : ops) bytes += request_wire_bytes(op.path, op.data, op.acl);
    return bytes;
}

}  // namespace zkrecipes::internal
