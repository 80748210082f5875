#include "bench/requests.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>

namespace zkrecipes::bench {
namespace {

using testenv::Opcode;
using testenv::Record;

bool is_create(Opcode opcode) {
    return opcode == Opcode::create || opcode == Opcode::create2 || opcode == Opcode::create_container;
}

bool only_checks(const Record& request) {
    return request.opcode == Opcode::multi &&
           std::all_of(request.parts.begin(), request.parts.end(),
                       [](const testenv::SubRequest& part) { return part.opcode == Opcode::check; });
}

/// One session in the middle of a hold.
struct Hold {
    std::array<int, static_cast<std::size_t>(Purpose::count)> requests{};
    std::string created;  // the path of the create, without the number that the server appends
    bool waited = false;
    bool told = false;  // that the predecessor is gone
    bool left = false;

    int& of(Purpose purpose) { return requests[static_cast<std::size_t>(purpose)]; }
    bool counts() const { return waited && left; }
};

Purpose purpose_of(const Record& request, const std::string& directory, Hold& hold) {
    if (only_checks(request)) {
        return hold.told && hold.of(Purpose::check) == 0 ? Purpose::check : Purpose::heartbeat;
    }
    if (request.opcode == Opcode::remove) return Purpose::leave;
    if (request.opcode == Opcode::get_children || request.opcode == Opcode::get_children2 ||
        (request.opcode == Opcode::exists && request.path == directory)) {
        return Purpose::look;
    }
    if (request.opcode == Opcode::get_data || request.opcode == Opcode::exists) {
        return request.path.starts_with(hold.created) ? Purpose::watch_own : Purpose::watch;
    }
    return Purpose::other;
}

}  // namespace

std::string_view to_string(Purpose purpose) {
    switch (purpose) {
        case Purpose::enter: return "create";
        case Purpose::look: return "looks at the queue";
        case Purpose::watch: return "watch on the predecessor";
        case Purpose::watch_own: return "watch on the own node";
        case Purpose::check: return "committed check";
        case Purpose::leave: return "delete";
        case Purpose::other: return "others";
        case Purpose::heartbeat: return "heartbeats, beside";
        case Purpose::count: break;
    }
    return "";
}

double HandOverRequests::total() const {
    return std::accumulate(by_purpose.begin(), by_purpose.end(), 0.0) - (*this)[Purpose::heartbeat];
}

HandOverRequests requests_of_hand_overs(const std::vector<Record>& trace, const std::string& directory) {
    HandOverRequests sum;
    std::map<std::int64_t, Hold> sessions;
    std::vector<double> totals;
    const auto add = [&](const Hold& hold) {
        if (!hold.counts()) return;
        ++sum.holds;
        totals.push_back(std::accumulate(hold.requests.begin(), hold.requests.end(), 0) -
                         hold.requests[static_cast<std::size_t>(Purpose::heartbeat)]);
        for (std::size_t i = 0; i < hold.requests.size(); ++i) sum.by_purpose[i] += hold.requests[i];
    };
    for (const Record& record : trace) {
        if (!record.path.starts_with(directory)) continue;
        Hold& hold = sessions[record.session];
        const bool was_gone = record.kind == Record::Kind::reply && record.error == testenv::zk_error::no_node;
        if (record.kind == Record::Kind::event || was_gone) {
            hold.told = hold.told || hold.waited;
        } else if (record.kind == Record::Kind::request && is_create(record.opcode)) {
            add(hold);
            hold = {};
            hold.created = record.path;
            hold.of(Purpose::enter) = 1;
        } else if (record.kind == Record::Kind::request) {
            const Purpose purpose = purpose_of(record, directory, hold);
            ++hold.of(purpose);
            hold.waited = hold.waited || purpose == Purpose::watch;
            hold.left = hold.left || purpose == Purpose::leave;
        }
    }
    for (const auto& [session, hold] : sessions) add(hold);
    for (double& each : sum.by_purpose) each /= std::max(sum.holds, 1);
    std::sort(totals.begin(), totals.end());
    if (!totals.empty()) sum.usual = totals[totals.size() / 2];
    return sum;
}

CycleRequests requests_of_cycles(const std::vector<Record>& trace, const std::string& directory, int cycles) {
    CycleRequests sum;
    for (const Record& record : trace) {
        if (record.kind != Record::Kind::request || !record.path.starts_with(directory)) continue;
        sum.requests += 1;
        sum.bytes += static_cast<double>(record.bytes - record.data_bytes);
    }
    return {sum.requests / cycles, sum.bytes / cycles};
}

}  // namespace zkrecipes::bench
