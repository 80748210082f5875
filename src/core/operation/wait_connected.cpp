#include <zkrecipes/session.hpp>

#include "core/operation/waiting.hpp"

namespace zkrecipes {
namespace internal {
namespace {

class Connecting final : public Waiting {
public:
    using Waiting::Waiting;

private:
    void begin() override {
        if (connected()) tell(true);
    }
    void connected_now() override { tell(true); }
    void closed(Errc why, std::string detail) override {
        tell(false, Error(why, operation_, core_->options().hosts, detail));
    }
};

}  // namespace
}  // namespace internal

void Session::wait_connected_async(Deadline deadline, std::stop_token stop, std::function<void(Result<bool>)> done) {
    constexpr const char* operation = "wait_connected_async";
    const auto core = internal::SessionAccess::core(*this);
    internal::check_callable(done, operation, core->options().hosts);
    core->throw_if_closed(operation, core->options().hosts);
    const auto make = [&](internal::Patience patience, internal::Waiting::Done answer) {
        return std::make_shared<internal::Connecting>(core, operation, patience, std::move(answer));
    };
    internal::wait_later(core, make, deadline, std::move(stop), std::move(done));
}

}  // namespace zkrecipes
