#include "core/operation/types.hpp"

namespace zkrecipes::internal {

Errc error_of(Rc rc) noexcept {
    switch (rc) {
        case Rc::no_auth: return Errc::no_permission;
        case Rc::quota_exceeded: return Errc::quota_exceeded;
        case Rc::invalid_acl: return Errc::bad_option;
        case Rc::unimplemented:
        case Rc::local_session: return Errc::unsupported;
        case Rc::bad_arguments: return Errc::bad_path;
        case Rc::no_children_for_ephemerals: return Errc::bad_path;
        case Rc::too_large: return Errc::too_large;
        case Rc::no_lease: return Errc::bad_option;
        default: return Errc::protocol;
    }
}

std::string answer_in_words(const std::string& what, Rc rc) {
    if (rc == Rc::no_auth) return what + " was refused";
    if (rc == Rc::no_children_for_ephemerals) {
        return "it is the ephemeral node of a contender or member, or below one, and that can have no children; name "
               "the directory of the lock";
    }
    const std::string number = is_known(rc) ? "" : " (" + std::to_string(static_cast<int>(rc)) + ")";
    return what + " was answered: " + to_string(rc) + number;
}

}  // namespace zkrecipes::internal
