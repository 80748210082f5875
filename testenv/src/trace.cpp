#include <algorithm>
#include <map>
#include <sstream>
#include <zkrecipes/testenv/trace.hpp>

namespace zkrecipes::testenv {

std::string to_string(const Record& record) {
    std::ostringstream text;
    switch (record.kind) {
        case Record::Kind::connected: text << "connected"; break;
        case Record::Kind::disconnected: text << "disconnected"; break;
        case Record::Kind::event: text << "<- event type " << record.flags; break;
        case Record::Kind::request: text << "-> " << to_string(record.opcode); break;
        case Record::Kind::reply: text << "<- " << to_string(record.opcode); break;
    }
    if (!record.path.empty()) {
        text << ' ' << record.path;
    }
    for (std::size_t i = 1; i < record.parts.size(); ++i) {
        text << " + " << to_string(record.parts[i].opcode) << ' ' << record.parts[i].path;
    }
    if (record.error != 0) {
        text << " error " << record.error;
    }
    if (record.kind == Record::Kind::request || record.kind == Record::Kind::reply) {
        text << " xid " << record.xid;
    }
    text << " session 0x" << std::hex << record.session << std::dec << " connection " << record.connection
         << (record.forwarded ? "" : " NOT FORWARDED");
    return text.str();
}

std::string to_string(const std::vector<Record>& trace) {
    std::ostringstream text;
    for (const auto& record : trace) {
        const auto since = std::chrono::duration_cast<std::chrono::microseconds>(record.time - trace.front().time);
        text << "  +" << since.count() << " us " << to_string(record) << '\n';
    }
    return text.str();
}

std::uint64_t Counts::operator[](Opcode opcode) const {
    const auto found = by_opcode_.find(opcode);
    return found == by_opcode_.end() ? 0 : found->second;
}

std::uint64_t Counts::total() const {
    std::uint64_t sum = 0;
    for (const auto& [opcode, number] : by_opcode_) {
        sum += opcode == Opcode::ping || opcode == Opcode::connect ? 0 : number;
    }
    return sum;
}

std::uint64_t Counts::writes() const {
    std::uint64_t sum = 0;
    for (const auto& [opcode, number] : by_opcode_) {
        sum += is_write(opcode) ? number : 0;
    }
    return sum;
}

std::string to_string(const Counts& counts) {
    std::string text;
    for (const auto& [opcode, number] : counts.by_opcode()) {
        text += (text.empty() ? "" : ", ") + to_string(opcode) + " " + std::to_string(number);
    }
    return text.empty() ? "nothing" : text;
}

Counts count(const std::vector<Record>& trace) {
    Counts counts;
    for (const auto& record : trace) {
        if (record.kind == Record::Kind::request) {
            counts.add(record.opcode);
        }
    }
    return counts;
}

int round_trips(const std::vector<Record>& trace, std::int64_t session) {
    std::map<std::pair<std::uint64_t, std::int32_t>, int> trip_of;  // of (connection, xid)
    int heard = 0;  // the latest round trip that an answer of has arrived
    int most = 0;
    for (const auto& record : trace) {
        // Reads of the root only probe the connection, as pings do: on a busy machine a late answer causes another one.
        const bool heartbeat = record.opcode == Opcode::ping || (record.opcode == Opcode::exists && record.path == "/");
        if (record.session != session || heartbeat || record.opcode == Opcode::connect) {
            continue;
        }
        if (record.kind == Record::Kind::request) {
            const int trip = heard + 1;
            trip_of[{record.connection, record.xid}] = trip;
            most = std::max(most, trip);
        } else if (record.kind == Record::Kind::event) {
            heard = most;
        } else if (record.kind == Record::Kind::reply) {
            const auto asked = trip_of.find({record.connection, record.xid});
            heard = asked == trip_of.end() ? heard : std::max(heard, asked->second);
        }
    }
    return most;
}

}  // namespace zkrecipes::testenv
