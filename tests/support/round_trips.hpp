#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <zkrecipes/testenv/gate.hpp>

#include "support/await.hpp"

namespace zkrecipes::test {

/// What passed the gate for the nodes below `root`. Without what is sent because time has passed: reads that keep a
/// session alive or wake a sleeping server, and reads of own nodes, which a hold watches half a second after it began.
inline std::vector<testenv::Record> trace_of(const testenv::Gate& gate, const std::string& root) {
    using testenv::Opcode;
    // A sequential create does not name the number that the server appends.
    const auto unnumbered = [](const std::string& node) {
        return node.substr(0, node.find_last_not_of("0123456789") + 1);
    };
    std::set<std::pair<std::int64_t, std::string>> made;  // by which session
    std::vector<testenv::Record> out;
    for (const auto& record : gate.trace()) {
        if (!record.path.starts_with(root)) continue;
        if (record.opcode == Opcode::get_data && made.contains({record.session, unnumbered(record.path)})) continue;
        if (record.opcode == Opcode::create2) made.emplace(record.session, unnumbered(record.path));
        for (const auto& part : record.parts) {
            if (part.opcode == Opcode::create) made.emplace(record.session, unnumbered(part.path));
        }
        out.push_back(record);
    }
    return out;
}

/// Makes a call that sends `requests[i]` requests in its round trip i. The gate hands no answer on before all requests
/// of a round trip have come: however slow the machine is, round_trips() counts only what had to wait for an answer.
template <class Call>
auto in_round_trips(testenv::Gate& gate, const std::string& root, std::vector<std::uint64_t> requests, Call call) {
    const auto of_test = testenv::Match::any().path(root);
    const auto sent = [&gate, &root] { return testenv::count(trace_of(gate, root)).total(); };
    const std::jthread answers([&gate, &root, of_test, sent, requests = std::move(requests), all = sent(),
                                held = gate.hold_reply(of_test)]() mutable {
        for (std::size_t i = 0; i < requests.size(); ++i) {
            all += requests[i];
            const bool complete = held.wait_reached(kMaxWait) && await([&] { return sent() >= all; });
            EXPECT_TRUE(complete) << "round trip " << i + 1 << " of:\n" << to_string(trace_of(gate, root));
            const auto answered = held;
            if (i + 1 < requests.size()) held = gate.hold_reply(of_test);
            answered.release();
            answered.cancel();  // where it has held nothing
        }
    });
    return call();
}

}  // namespace zkrecipes::test
