#include <zkrecipes/grant.hpp>

#include <algorithm>
#include <utility>

#include "core/hold/hold_ref.hpp"
#include "core/hold/labels.hpp"
#include "core/operation/to_result.hpp"

namespace zkrecipes {

const char* to_string(Missed missed) noexcept {
    switch (missed) {
        case Missed::none: return "none";
        case Missed::busy: return "busy";
        case Missed::unreachable: return "unreachable";
        case Missed::stopped: return "stopped";
    }
    return "?";
}

Grant::Grant() noexcept = default;
Grant::Grant(std::shared_ptr<internal::HoldRef> share, Missed missed) noexcept
    : share_(std::move(share)), missed_(share_ ? Missed::none : missed) {}
Grant::Grant(Grant&& other) noexcept
    : share_(std::exchange(other.share_, nullptr)), missed_(std::exchange(other.missed_, Missed::none)) {}
Grant& Grant::operator=(Grant&& other) noexcept {
    if (this != &other) {
        release();
        share_ = std::exchange(other.share_, nullptr);
        missed_ = std::exchange(other.missed_, Missed::none);
    }
    return *this;
}
Grant::~Grant() { release(); }

Grant Grant::again() const noexcept {
    if (share_) share_->enter();
    return Grant(share_);
}

bool Grant::held() const noexcept { return is_held(share_); }
std::stop_token Grant::lost() const noexcept { return lost_of(share_); }
std::stop_token Grant::revocation() const { return share_ ? share_->revocation() : std::stop_token(); }
std::chrono::milliseconds Grant::remaining_lease() const noexcept {
    // Rounded down: never more than is certain.
    return share_ ? std::chrono::duration_cast<std::chrono::milliseconds>(share_->hold().remaining_lease())
                  : std::chrono::milliseconds(0);
}
FencingToken Grant::token() const noexcept { return token_of(share_); }
std::uint64_t Grant::handovers() const noexcept { return share_ ? share_->handovers() : 0; }
std::string Grant::node() const { return share_ ? share_->hold().node() : std::string(); }
std::vector<std::string> Grant::nodes() const { return share_ ? share_->hold().nodes() : std::vector<std::string>(); }
std::int64_t Grant::session_id() const noexcept { return share_ ? share_->hold().session_id() : 0; }

void Grant::release() noexcept {
    if (const auto share = std::exchange(share_, nullptr)) share->leave();
}

bool Grant::release_and_wait(Deadline deadline) {
    const auto share = std::exchange(share_, nullptr);
    return !share || share->leave_and_wait(deadline);
}

void Grant::release_and_wait_async(Deadline deadline, std::stop_token stop, std::function<void(Result<bool>)> done) {
    internal::check_callable(done, "release_and_wait_async", node());
    if (const auto share = std::exchange(share_, nullptr)) {
        share->leave_later(deadline, std::move(stop), std::move(done));
    } else {
        done({true, nullptr});
    }
}

bool Grant::set_labels(std::map<std::string, std::string> labels, Deadline deadline, std::stop_token stop) const {
    return internal::set_labels(share_, std::move(labels), deadline, std::move(stop));
}

void Grant::set_labels_async(std::map<std::string, std::string> labels, Deadline deadline, std::stop_token stop,
                             std::function<void(Result<bool>)> done) const {
    internal::set_labels_async(share_, std::move(labels), deadline, std::move(stop), std::move(done));
}

}  // namespace zkrecipes
