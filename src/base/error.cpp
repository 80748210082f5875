#include <zkrecipes/error.hpp>

namespace zkrecipes {
namespace {

struct Texts {
    const char* name;
    const char* words;
};

Texts texts_of(Errc code) noexcept {
    switch (code) {
        case Errc::bad_path: return {"bad_path", "bad path"};
        case Errc::bad_connect_string: return {"bad_connect_string", "bad connect string"};
        case Errc::bad_option: return {"bad_option", "bad option"};
        case Errc::unreachable: return {"unreachable", "no ZooKeeper server answered"};
        case Errc::connection_lost: return {"connection_lost", "connection lost"};
        case Errc::session_lost: return {"session_lost", "session lost"};
        case Errc::closed: return {"closed", "session closed"};
        case Errc::auth_failed: return {"auth_failed", "authentication failed"};
        case Errc::no_permission: return {"no_permission", "not permitted"};
        case Errc::lock_lost: return {"lock_lost", "lock lost"};
        case Errc::not_owner: return {"not_owner", "not the owner"};
        case Errc::would_deadlock: return {"would_deadlock", "would deadlock"};
        case Errc::budget_exceeded: return {"budget_exceeded", "session budget exceeded"};
        case Errc::too_large: return {"too_large", "request too large"};
        case Errc::quota_exceeded: return {"quota_exceeded", "quota exceeded"};
        case Errc::sequence_exhausted: return {"sequence_exhausted", "sequence numbers exhausted"};
        case Errc::bad_data: return {"bad_data", "bad data in ZooKeeper"};
        case Errc::no_parent: return {"no_parent", "parent missing"};
        case Errc::unsupported: return {"unsupported", "not supported"};
        case Errc::protocol: return {"protocol", "unexpected answer"};
        case Errc::outcome_unknown: return {"outcome_unknown", "outcome unknown"};
        case Errc::node_exists: return {"node_exists", "node exists"};
        case Errc::no_node: return {"no_node", "no such node"};
        case Errc::bad_version: return {"bad_version", "version differs"};
        case Errc::not_empty: return {"not_empty", "node has children"};
        case Errc::out_of_resources: return {"out_of_resources", "out of resources"};
    }
    return {"?", "unknown error"};
}

class Category final : public std::error_category {
public:
    const char* name() const noexcept override { return "zkrecipes"; }
    std::string message(int code) const override { return texts_of(static_cast<Errc>(code)).words; }
};

std::string compose(Errc code, std::string_view operation, std::string_view path, std::string_view detail) {
    std::string text(operation);
    if (!path.empty()) text.append(" ").append(path);
    text.append(": ").append(texts_of(code).words);
    if (!detail.empty()) text.append(": ").append(detail);
    return text;
}

}  // namespace

const char* to_string(Errc code) noexcept { return texts_of(code).name; }

const std::error_category& error_category() noexcept {
    static const auto& category = *new Category;  // never destroyed: static objects may throw while they are
    return category;
}

std::error_code make_error_code(Errc code) noexcept { return {static_cast<int>(code), error_category()}; }

Error::Error(Errc code, std::string_view operation, std::string_view path, std::string_view detail)
    : std::system_error(make_error_code(code)),
      errc_(code),
      operation_(operation),
      path_(path),
      text_(compose(code, operation, path, detail)) {}

}  // namespace zkrecipes
