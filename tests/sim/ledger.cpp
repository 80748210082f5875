#include "sim/ledger.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/paths.hpp"
#include "core/value/big_endian.hpp"

namespace zkrecipes::sim {

void Ledger::keep(const std::string& path, Kind kind, std::string seed) { kept_[path] = {kind, std::move(seed)}; }

std::optional<std::int64_t> Ledger::number_of(const std::string& data) {
    if (data.size() == 4) return internal::from_big_endian<std::int32_t>(data);
    return internal::from_big_endian<std::int64_t>(data);
}

std::int64_t Ledger::value_of(const NodeState& state) { return state.exists ? number_of(state.data).value_or(0) : 0; }

std::uint64_t Ledger::begins(Write write) {
    writes_.push_back(std::move(write));
    return writes_.size();
}

void Ledger::ends(std::uint64_t number, Outcome outcome) {
    Write& write = *find(number);
    write.outcome = outcome;
    if (write.doubtful) return;
    if (outcome == Outcome::done && write.happened == 0) {
        judge_.violation("write-lost", write.who + ": said to be done, but it has not happened");
    }
    if (outcome == Outcome::refused && write.happened != 0) {
        judge_.violation("write-refused", write.who + ": said not to be done, but it has happened");
    }
}

Ledger::Write* Ledger::find(std::uint64_t number) {
    return number == 0 || number > writes_.size() ? nullptr : &writes_[number - 1];
}

void Ledger::committed(const Txn& txn, const DataTree& tree) {
    for (const Effect& effect : txn.effects) {
        if (effect.kind != Effect::Kind::create && effect.kind != Effect::Kind::set) continue;
        const auto kept = kept_.find(effect.path);
        if (kept != kept_.end()) changed(effect.path, kept->second, tree);
    }
}

void Ledger::changed(const std::string& path, const Kept& kept, const DataTree& tree) {
    const History::States& states = history_.of(path);
    const NodeState& now = states.back();
    const NodeState& former = states[states.size() - 2];
    if (!former.exists && now.data == kept.seed) return;
    Write* const write =
        kept.kind == Kind::text ? writer_of_text(now) : writer_of_number(path, value_of(former), value_of(now));
    if (write == nullptr || write->path != path) {
        judge_.violation("write-foreign", path + ": was changed by nobody who was to change it");
        return;
    }
    write->position = states.size() - 1;
    write->after = value_of(now);
    happens(*write, static_cast<std::uint64_t>(write - writes_.data()) + 1);
    if (!write->guard.empty()) check_guard(*write, tree);
}

Ledger::Write* Ledger::writer_of_text(const NodeState& now) {
    return find(std::strtoull(now.data.c_str(), nullptr, 10));
}

Ledger::Write* Ledger::adder(const std::string& path, std::int64_t before, std::int64_t after) {
    const std::uint64_t up = static_cast<std::uint64_t>(after) - static_cast<std::uint64_t>(before);
    const auto delta = static_cast<std::int64_t>(up);
    Write* const write = find(delta < 0 ? 0 - up : up);
    return write != nullptr && write->path == path && !write->number && write->delta == delta ? write : nullptr;
}

Ledger::Write* Ledger::writer_of_number(const std::string& path, std::int64_t before, std::int64_t after) {
    const auto base = [&](Write* write, std::int64_t number) {
        if (write != nullptr) write->before = number;
        return write;
    };
    Write* const added = adder(path, before, after);
    const std::vector<Write*> others = writers_of_an_equal_version(path, after);
    if (added != nullptr && added->happened == 0) {
        // By chance the difference may be that of a write whose node was made again meanwhile.
        for (Write* const other : others) {
            if (other != added) added->doubtful = other->doubtful = true;
        }
        return base(added, before);
    }
    for (Write& each : writes_) {
        if (each.path == path && each.number == after) return base(&each, before);
    }
    if (others.size() > 1) {
        for (Write* const other : others) other->doubtful = true;
    }
    return others.empty() ? base(added, before) : others.front();
}

/// Deleted and made again with the same version between somebody's read and write: documented, and nobody's fault. The
/// same where versions are hurried and come round within seconds instead of four thousand million writes. By chance
/// there may be several whom it could be.
std::vector<Ledger::Write*> Ledger::writers_of_an_equal_version(const std::string& path, std::int64_t after) {
    const History::States& states = history_.of(path);
    const NodeState& former = states[states.size() - 2];
    std::vector<Write*> found;
    for (const NodeState& each : states) {
        if (!each.exists || each.zxid == former.zxid || each.version != former.version) continue;
        Write* const added = adder(path, value_of(each), after);
        if (added == nullptr || added->happened != 0 || std::ranges::find(found, added) != found.end()) continue;
        added->before = value_of(each);
        found.push_back(added);
    }
    return found;
}

void Ledger::happens(Write& write, std::uint64_t number) {
    if (++write.happened > 1 && !write.doubtful) {
        judge_.violation("write-twice",
                         write.who + ": write " + std::to_string(number) + " of " + write.path + " has happened twice");
    }
    if (write.outcome == Outcome::refused && !write.doubtful) {
        judge_.violation("write-refused", write.who + ": happens after it was said not to be done");
    }
}

/// At this point of the history the node of its grant must be there, and first in its queue.
void Ledger::check_guard(const Write& write, const DataTree& tree) {
    const Node* const guard = tree.find(write.guard);
    bool first = guard != nullptr && guard->czxid == write.token;
    if (first) {
        const auto number = [](const std::string& name) { return name.substr(name.size() - 10); };
        const std::string own = number(name_of(write.guard));
        const Node* const directory = tree.find(parent_of(write.guard));
        first = std::none_of(directory->children.begin(), directory->children.end(),
                             [&](const std::string& other) { return number(other) < own; });
    }
    if (!first) judge_.violation("guard", write.who + ": a guarded write happens though its grant is over");
}

}  // namespace zkrecipes::sim
