#include "chaos/stage.hpp"

namespace zkrecipes::chaos {

namespace {

constexpr std::chrono::seconds kPatience{60};

}  // namespace

std::unique_ptr<ActorProcess> Control::start(const std::string& hosts) {
    auto process = std::make_unique<ActorProcess>(
        board_, std::vector<std::string>{"role=naive", "rule=last-answer", "hosts=" + hosts, "dir=" + dir_,
                                         "timeout-ms=4000", "actor=" + std::to_string(actor_++),
                                         "first-lock=" + std::to_string(kControlLock), "locks=1"});
    process->expect("connected", kPatience);
    return process;
}

void Control::begin(int member) {
    auto& ensemble = arena_.ensemble();
    std::string others;
    for (int i = 0; i < arena_.size(); ++i) {
        if (i != member) others += (others.empty() ? "" : ",") + ensemble.connect_string(i);
    }
    holder_ = start(ensemble.connect_string(member));
    holder_->send("acquire");
    holder_->expect("granted", kPatience);
    waiter_ = start(others);
    waiter_->send("acquire");
    ++tried_;
}

void Control::end() {
    waiter_->expect("granted", kPatience);
    for (auto* process : {&holder_, &waiter_}) {
        (*process)->quit(kPatience);
        process->reset();
    }
}

}  // namespace zkrecipes::chaos
