#include <zkrecipes/error.hpp>

namespace zkrecipes {
namespace {

const char* text_of(Errc code) noexcept {
    switch (code) {
        case Errc::bad_path: return "bad path";
        case Errc::bad_connect_string: return "bad connect string";
        case Errc::bad_option: return "bad option";
        case Errc::unreachable: return "no ZooKeeper server answered";
        case Errc::connection_lost: return "connection lost";
        case Errc::session_lost: return "session lost";
        case Errc::closed: return "session closed";
        case Errc::auth_failed: return "authentication failed";
        case Errc::no_permission: return "not permitted";
        case Errc::lock_lost: return "lock lost";
        case Errc::not_owner: return "not the owner";
        case Errc::would_deadlock: return "would deadlock";
        case Errc::budget_exceeded: return "session budget exceeded";
        case Errc::too_large: return "request too large";
        case Errc::quota_exceeded: return "quota exceeded";
        case Errc::sequence_exhausted: return "sequence numbers exhausted";
        case Errc::bad_data: return "bad data in ZooKeeper";
        case Errc::no_parent: return "parent missing";
        case Errc::unsupported: return "not supported";
        case Errc::protocol: return "unexpected answer";
        case Errc::outcome_unknown: return "outcome unknown";
        case Errc::node_exists: return "node exists";
        case Errc::no_node: return "no such node";
        case Errc::bad_version: return "version differs";
        case Errc::not_empty: return "node has children";
        case Errc::out_of_resources: return "out of resources";
    }
    return "unknown error";
}

class Category final : public std::error_category {
public:
    const char* name() const noexcept override { return "zkrecipes"; }
    std::string message(int code) const override { return text_of(static_cast<Errc>(code)); }
};

std::string compose(Errc code, std::string_view operation, std::string_view path, std::string_view detail) {
    std::string text(operation);
    if (!path.empty()) text.append(" ").append(path);
    text.append(": ").append(text_of(code));
    if (!detail.empty()) text.append(": ").append(detail);
    return text;
}

}  // namespace

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
