#include "fuzz/targets.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <zkrecipes/error.hpp>

#include "base/connect_string.hpp"
#include "base/paths.hpp"
#include "core/acquire/lock_delay_fsm.hpp"
#include "core/acquire/semaphore_fsm.hpp"
#include "core/queue/node_name.hpp"
#include "core/queue/participants.hpp"
#include "core/queue/payload.hpp"
#include "core/queue/queue_rule.hpp"
#include "core/value/sequencer.hpp"
#include "testenv/src/wire.hpp"
#include "zklock/command_line/duration.hpp"
#include "zklock/command_line/options.hpp"
#include "zklock/command_line/settings.hpp"
#include "zklock/once/run_record.hpp"

namespace zkrecipes::fuzz {
namespace {

using namespace internal;  // NOLINT: for tests only

void require(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

std::vector<std::string> lines(std::string_view text) {
    std::vector<std::string> all;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        all.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return all;
}

/// The names of a lock directory's children, one in a line.
void queue_names(std::string_view input) {
    const auto children = lines(input);
    const auto queue = sorted_queue(children, lock_patterns());
    for (const auto& each : queue) {
        require(parse_queue_name(each.name, lock_patterns()).has_value(), "the queue has only what has a number");
    }
    require(queue.size() <= children.size(), "nobody stands in the queue twice");
    int alone = 0;
    for (const auto& child : children) {
        for (const auto& rule :
             {rule_exclusive(), rule_shared(), rule_exclusive(Dialect::kazoo), rule_shared(Dialect::kazoo)}) {
            const QueuePosition position = rule->position(children, child);
            require(position.kind != QueuePosition::Kind::wait || position.predecessor != child,
                    "nobody waits for itself");
        }
        // One of a name, as on a server.
        const bool unique = std::count(children.begin(), children.end(), child) == 1;
        const bool contends = child.find("lock-") != std::string::npos || child.find("__WRIT__") != std::string::npos;
        if (unique && contends && rule_exclusive()->position(children, child).kind == QueuePosition::Kind::held)
            ++alone;
    }
    require(alone <= 1, "one holds alone at most");
}

void payload(std::string_view input) {
    Participant participant;
    read_payload(std::string(input), participant);
    require(participant.raw == input, "what is in the node is shown as it is");
    std::size_t shown = participant.id.size() + participant.host.size();
    for (const auto& [name, value] : participant.labels) shown += name.size() + value.size();
    require(shown <= input.size() * 3, "nothing is shown that is not there");  // what is not UTF-8 grows
}

void path(std::string_view input) {
    if (!path_problem(input).empty()) return;
    require(!input.empty() && input.front() == '/', "only absolute paths are paths");
    if (input == "/") return;
    require(join_path(parent_path(input), base_name(input)) == input, "a path is its parent and its name");
    for (const auto& ancestor : ancestors(input)) {
        require(path_problem(ancestor).empty(), "an ancestor of a path is a path");
        require(is_at_or_below(input, ancestor), "a path is below its ancestors");
    }
}

void connect_string(std::string_view input) {
    try {
        const auto read = parse_connect_string(input);
        require(!read.servers.empty(), "without a server it is an error");
        require(read.chroot.empty() || path_problem(read.chroot).empty(), "the chroot is a path");
        require(read.chroot.find_first_of(",;|: \t\r\n\v\f") == std::string::npos, "no list ends up in the chroot");
        std::string again;
        for (const auto& host : read.hosts()) again += (again.empty() ? "" : ",") + host;
        require(parse_connect_string(again).servers == read.servers, "what is written is read as the same");
    } catch (const Error& error) {
        require(error.errc() == Errc::bad_connect_string || error.errc() == Errc::bad_path,
                "the error says what it is");
    }
}

void lease_limit(std::string_view input) {
    if (const auto limit = read_limit(input)) {
        require(*limit >= 1, "a semaphore has a lease");
        require(read_limit(write_limit(*limit)) == limit, "what is written is read as the same");
    }
}

/// The data of the directory of a lock with a delay.
void holder_mark(std::string_view input) {
    if (const auto mark = read_holder_mark(input)) {
        require(input.empty() || mark->token > 0, "whoever held has a token");
        require(input.empty() || read_holder_mark(write_holder_mark(*mark)) == mark,
                "what is written is read as the same");
    }
}

void sequencer(std::string_view input) {
    const auto parsed = parse_sequencer(input);
    if (const auto* what = std::get_if<SequencerText>(&parsed)) {
        require(write_sequencer(*what) == input, "there is one text for each hold");
        require(what->token > 0 && !what->nodes.empty(), "a hold has a token and a node");
    } else {
        require(std::get<SequencerProblem>(parsed).at <= input.size(), "the problem is in the text");
    }
}

void duration(std::string_view input) {
    if (const auto read = zklock::parse_duration(input)) {
        require(read->count() >= 0, "no duration is negative");
        require(!zklock::format_duration(*read).empty(), "each can be printed");
    }
}

/// What zklock --once-per keeps in ZooKeeper.
void run_record(std::string_view input) {
    const auto record = zklock::parse_run_record(input);
    if (!record) return;
    require(zklock::parse_run_record(zklock::to_text(*record)) == record, "it is read as it was written");
    const auto start = zklock::period_start(record->claimed, record->per);
    require(start <= record->claimed && record->claimed < start + record->per, "a claim is in its period");
    require(!zklock::iso_time(start + record->per).empty(), "each time can be printed");
    require(!zklock::outcome_in_words(*record).empty(), "each outcome can be told");
    const auto decision = zklock::decide(record, start, false, record->id + "x");
    require(decision == zklock::Decision::done || decision == zklock::Decision::unknown, "its period is claimed");
}

/// A configuration file of zklock.
void config(std::string_view input) {
    const int file = ::memfd_create("config", MFD_CLOEXEC);
    require(file >= 0, "there is a descriptor");
    require(::write(file, input.data(), input.size()) == static_cast<ssize_t>(input.size()), "it takes the input");
    try {
        const zklock::Settings settings({{"config", "/proc/self/fd/" + std::to_string(file)}});
        for (const auto& setting : zklock::kSettings) settings.find(setting.key);
    } catch (const zklock::Failure& failure) {
        require(failure.code == 78, "the exit code says where the mistake is");
    }
    ::close(file);
}

/// Both directions of a connection that the gate looks into, in pieces as they may come from a socket.
void gate_protocol(std::string_view input) {
    using namespace testenv;
    wire::FrameSplitter splitter;
    std::size_t out = 0;
    const std::size_t piece = input.empty() ? 1 : 1 + static_cast<unsigned char>(input.front()) % 17;
    for (std::size_t at = 0; at < input.size() && !splitter.broken(); at += piece) {
        splitter.feed(input.substr(at, piece));
        while (const auto frame = splitter.next()) {
            out += frame->size();
            const auto body = wire::body(*frame);
            static_cast<void>(wire::parse_connect_request(body));
            static_cast<void>(wire::parse_connect_response(body));
            static_cast<void>(wire::parse_request(body));
            static_cast<void>(wire::parse_reply(body));
            static_cast<void>(wire::parse_event(body));
            wire::Reader reader(body);
            static_cast<void>(wire::read_stat(reader));
        }
    }
    require(out + splitter.buffered() <= input.size(), "nothing is handed on that did not come");
}

constexpr Target kTargets[] = {
    {"queue_names", queue_names},
    {"payload", payload},
    {"path", path},
    {"connect_string", connect_string},
    {"lease_limit", lease_limit},
    {"duration", duration},
    {"config", config},
    {"gate_protocol", gate_protocol},
    {"sequencer", sequencer},
    {"holder_mark", holder_mark},
    {"run_record", run_record},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target* find_target(std::string_view name) {
    const auto found =
        std::find_if(std::begin(kTargets), std::end(kTargets), [&](const Target& each) { return each.name == name; });
    return found == std::end(kTargets) ? nullptr : &*found;
}

}  // namespace zkrecipes::fuzz
