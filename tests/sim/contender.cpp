#include "sim/contender.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/queue/node_name.hpp"

namespace zkrecipes::sim {

namespace {

constexpr const char* kFirstName = "_c_00000000-0000-4000-8000-000000000000-lock-";  // no other identity is smaller
constexpr std::size_t kDigits = 10;

std::string hex_digits(Rng& rng) {
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(rng.next()),
                  static_cast<unsigned long long>(rng.next()));
    return text;
}

std::string number_of(const std::string& name) {
    return name.size() < kDigits ? "" : name.substr(name.size() - kDigits);
}

bool has_pattern(const std::string& name, std::string_view pattern) {
    return name.size() > kDigits && std::string_view(name).substr(0, name.size() - kDigits).ends_with(pattern);
}

}  // namespace

Contender::Contender(SimEnsemble& ensemble, const Plan& plan, Judge& judge, int place, std::string directory,
                     Style style)
    : world_(ensemble.world()),
      ensemble_(ensemble),
      judge_(judge),
      place_(place),
      directory_(std::move(directory)),
      style_(style),
      timeout_(plan.timeout_ms * kMilli),
      rng_(world_.fork("contender " + directory_)),
      client_(ensemble, "contender " + directory_, plan.timeout_ms) {
    ensemble.listen([this](const Txn& txn) { committed(txn); });
}

void Contender::start() { in(rng_.between(0, 2 * kSecond), &Contender::attempt); }

void Contender::stop() {
    stopped_ = true;
    client_.close();
}

void Contender::in(SimTime delay, void (Contender::*what)()) {
    world_.in(delay, &client_.actor(), [this, what] {
        if (!stopped_) (this->*what)();
    });
}

void Contender::rest() { in(rng_.between(0, 2 * kSecond), &Contender::attempt); }

void Contender::attempt() {
    static_cast<void>(client_.client());  // another session, where the former one is over
    // What a former session left is still there until that has ended.
    client_.connected() && held_.empty() ? create() : in(200 * kMilli, &Contender::attempt);
}

std::string Contender::prefix() const {
    return style_ == Style::kazoo_read ? "__rlock__" : style_ == Style::same_number ? "lock-" : "__lock__";
}

void Contender::create() {
    std::string path = directory_ + "/";
    CreateMode mode = CreateMode::ephemeral_sequential;
    if (style_ == Style::same_number) {
        const Node* const node = ensemble_.committed().find(directory_);
        if (node == nullptr || node->cversion >= internal::kSequenceLimit) return rest();
        char number[16];
        number_ = node->cversion + 1;
        in_time_ = false;
        std::snprintf(number, sizeof number, "%010d", number_);
        path += kFirstName + std::string(number);
        mode = CreateMode::ephemeral;
    } else {
        path += hex_digits(rng_) + prefix();
    }
    client_.client().create(path, "", open_acl(), mode, [this](Rc rc, const std::string& made, const NodeStat&) {
        if (stopped_) return;
        if (rc == Rc::ok) {
            node_ = name_of(made);
            return in_time_ ? look() : give_back();  // others may have come in between
        }
        // Whatever came of it ends with the session.
        if (rc != Rc::no_node && rc != Rc::node_exists) client_.begin_anew();
        rest();
    });
}

void Contender::look() {
    client_.client().children(directory_, false, [this](Rc rc, const std::vector<std::string>& names, const NodeStat&) {
        if (stopped_) return;
        if (rc == Rc::ok) return listed(names);
        client_.begin_anew();
        rest();
    });
}

/// kazoo compares the digits as text, and counts those whose last pattern is one that excludes it.
bool Contender::before_us(const std::string& name) const {
    const bool lock = has_pattern(name, "__lock__");
    const bool read = has_pattern(name, "__rlock__");
    switch (style_) {
        case Style::kazoo_lock:
        case Style::kazoo_read: return lock && number_of(name) < number_of(node_);
        case Style::kazoo_write: return (lock || read) && number_of(name) < number_of(node_);
        case Style::same_number: break;
    }
    return number_of(name) < number_of(node_);  // everybody is in this queue
}

void Contender::listed(const std::vector<std::string>& names) {
    if (std::ranges::find(names, node_) == names.end()) return rest();
    if (std::ranges::any_of(names, [this](const std::string& name) { return before_us(name); }))
        return in(rng_.between(20, 100) * kMilli, &Contender::look);
    // Deleted since: the judge has been told, or the list is from a server that has not heard of it.
    const std::string path = directory_ + "/" + node_;
    if (ensemble_.committed().find(path) != nullptr) {
        held_ = path;
        judge_.contender_granted(place_, style_ == Style::kazoo_read, path);
    }
    in(rng_.between(0, timeout_), &Contender::give_back);
}

void Contender::give_back() {
    client_.client().remove(directory_ + "/" + node_, -1, [this](Rc rc) {
        if (stopped_) return;
        if (rc != Rc::ok && rc != Rc::no_node) client_.begin_anew();
        rest();
    });
}

void Contender::committed(const Txn& txn) {
    for (const Effect& effect : txn.effects) {
        if (effect.kind == Effect::Kind::create && style_ == Style::same_number && owns(txn.session))
            in_time_ = ensemble_.committed().find(directory_)->cversion == number_;
        if (effect.kind == Effect::Kind::remove && effect.path == held_) {
            judge_.contender_ended(held_);
            held_.clear();
        }
    }
}

}  // namespace zkrecipes::sim
