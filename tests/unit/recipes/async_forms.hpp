#pragma once

// Every call that blocks, and its asynchronous form.
#include <zkrecipes/atomic_counter.hpp>
#include <zkrecipes/barrier.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/group_member.hpp>
#include <zkrecipes/inspect.hpp>
#include <zkrecipes/leader_election.hpp>
#include <zkrecipes/multi_lock.hpp>
#include <zkrecipes/persistent_node.hpp>
#include <zkrecipes/read_node.hpp>
#include <zkrecipes/read_write_lock.hpp>
#include <zkrecipes/semaphore.hpp>
#include <zkrecipes/semaphore_mutex.hpp>
#include <zkrecipes/sequencer.hpp>
#include <zkrecipes/shared_count.hpp>
#include <zkrecipes/shared_value.hpp>

#include <functional>
#include <ostream>
#include <regex>

#include "unit/recipes/served_fixture.hpp"

namespace zkrecipes::testing {

using namespace std::chrono_literals;

// ---- values as text ----------------------------------------------------------------------------------------------

inline std::string text(bool value) { return value ? "true" : "false"; }
inline std::string text(std::int32_t value) { return std::to_string(value); }
inline std::string text(std::int64_t value) { return std::to_string(value); }
inline std::string text(const Participant& one) { return one.path + (one.holder ? " holds" : " waits"); }
inline std::string text(const NodeContent& node) { return node.path + "=" + node.data; }
inline std::string text(const VersionedValue& value) { return value.value + " v" + std::to_string(value.version); }
inline std::string text(const VersionedCount& value) {
    return text(value.count) + " v" + std::to_string(value.version);
}
inline std::string text(const CounterChange& change) {
    return text(change.before) + "->" + text(change.after) + (change.changed ? "" : " unchanged");
}
template <class T>
std::string text(const std::vector<T>& values);
inline std::string text(const LockView& view) {
    return view.path + (view.semaphore ? " semaphore of " + text(view.leases) : "") + text(view.participants);
}
inline std::string text(const std::string& value) { return value; }
inline std::string text(const LockNames& names) {
    return names.path + text(names.participants) + " others " + text(names.others);
}
inline std::string text(const FoundLocks& found) { return text(found.locks) + " hidden " + text(found.unreadable); }
inline std::string text(const GroupMembers& members) {
    std::string out;
    for (const auto& [id, payload] : members) out += id + "=" + payload + " ";
    return out;
}
template <class T>
std::string text(const std::optional<T>& value) {
    return value ? text(*value) : "nothing";
}
template <class T>
std::string text(const std::vector<T>& values) {
    std::string out;
    for (const auto& value : values) out += " [" + text(value) + "]";
    return out;
}

inline std::string text_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const Error& why) {
        return std::string("Error ") + std::to_string(static_cast<int>(why.errc()));
    }
}

/// How a call ended, when it has ended.
struct Told {
    int times = 0;
    std::string what{};
    template <class T>
    std::function<void(Result<T>)> taker() {
        return [this](const Result<T>& result) {
            ++times;
            what = result.error ? text_of(result.error) : text(result.value);
        };
    }
};

// ---- the calls ---------------------------------------------------------------------------------------------------

/// The objects that the calls are made on; everything is in the tree already.
struct World {
    explicit World(Session& s)
        : session(s),
          mutex(s, "/lock"),
          rw(s, "/lock"),
          set(s, {{"/lock"}, {"/other"}}),
          semaphore(s, "/semaphore", 2),
          semaphore_mutex(s, "/single"),
          election(s, "/election"),
          group(s, "/group"),
          counter(s, "/counter"),
          value(s, "/value", "seed"),
          count(s, "/count", 7),
          barrier(s, "/barrier"),
          sequencer(Sequencer::parse("zkr1r:c:x" + first_node())) {
        first.path = first_node();
        first.token = 12;
    }
    static std::string first_node() { return "/lock/_c_00000000-0000-4000-8000-000000000001-lock-0000000001"; }
    Session& session;
    ExclusiveMutex mutex;
    ReadWriteLock rw;
    MultiLock set;
    Semaphore semaphore;
    SemaphoreMutex semaphore_mutex;
    LeaderElection election;
    Group group;
    AtomicCounter counter;
    SharedValue value;
    SharedCount count;
    Barrier barrier;
    Sequencer sequencer;
    Participant first;
};

struct Form {
    std::string name;
    std::function<std::string(World&, Deadline)> blocking;
    std::function<void(World&, Deadline, std::stop_token, Told&)> async;
    bool unreachable = true;  // when nobody answers in time; otherwise false
};
inline void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

template <class T, class Blocking, class Async>
Form form(std::string name, Blocking blocking, Async async, bool unreachable = true) {
    return {std::move(name),
            [blocking](World& w, Deadline d) -> std::string {
                if constexpr (std::is_void_v<decltype(blocking(w, d))>) {
                    blocking(w, d);
                    return text(true);
                } else {
                    return text(T(blocking(w, d)));
                }
            },
            [async](World& w, Deadline d, std::stop_token s, Told& told) { async(w, d, s, told.taker<T>()); },
            unreachable};
}

#define CALL(T, object, verb)                                                     \
    form<T>(                                                                      \
        #object "_" #verb, [](World& w, Deadline d) { return w.object.verb(d); }, \
        [](World& w, Deadline d, std::stop_token s, auto done) { w.object.verb##_async(d, s, done); })
#define CALL_WITH(T, object, verb, ...)                                                        \
    form<T>(                                                                                   \
        #object "_" #verb, [](World& w, Deadline d) { return w.object.verb(__VA_ARGS__, d); }, \
        [](World& w, Deadline d, std::stop_token s, auto done) { w.object.verb##_async(__VA_ARGS__, d, s, done); })
#define FREE(T, verb, what)                                                     \
    form<T>(                                                                    \
        #verb, [](World& w, Deadline d) { return verb(w.session, w.what, d); }, \
        [](World& w, Deadline d, std::stop_token s, auto done) { verb##_async(w.session, w.what, d, s, done); })

inline std::vector<Form> forms() {
    using Participants = std::vector<Participant>;
    using Change = std::optional<CounterChange>;
    std::vector<Form> all{
        CALL(Participants, mutex, participants),
        CALL(Participants, rw, participants),
        CALL(std::vector<LockView>, set, participants),
        CALL(Participants, semaphore, participants),
        CALL(Participants, semaphore_mutex, participants),
        CALL(std::int32_t, semaphore, leases),
        CALL_WITH(bool, semaphore, set_leases, 3),
        CALL(std::optional<Participant>, election, leader),
        CALL(Participants, election, candidates),
        CALL(GroupMembers, group, members),
        CALL_WITH(std::int64_t, counter, get, Fresh::yes),
        CALL(VersionedValue, value, get),
        CALL(VersionedCount, count, get),
        CALL_WITH(bool, counter, force_set, 5),
        CALL_WITH(bool, counter, initialize, 5),
        FREE(bool, still_held, sequencer),
        FREE(bool, release_held, sequencer),
        FREE(bool, request_revocation, first),
        FREE(bool, remove_participant, first),
        form<LockView>(
            "inspect_lock", [](World& w, Deadline d) { return inspect_lock(w.session, "/semaphore", d); },
            [](World& w, Deadline d, std::stop_token s, auto done) {
                inspect_lock_async(w.session, "/semaphore", true, d, s, done);
            }),
        form<LockNames>(
            "list_lock", [](World& w, Deadline d) { return list_lock(w.session, "/lock", d); },
            [](World& w, Deadline d, std::stop_token s, auto done) {
                list_lock_async(w.session, "/lock", d, s, done);
            }),
        form<FoundLocks>(
            "find_locks",
            [](World& w, Deadline d) {
                FoundLocks found;
                found.locks = find_locks(w.session, "/", d, &found.unreadable);
                return found;
            },
            [](World& w, Deadline d, std::stop_token s, auto done) {
                find_locks_async(w.session, "/", {}, d, s, done);
            }),
        form<std::optional<NodeContent>>(
            "read_node", [](World& w, Deadline d) { return read_node(w.session, "/value", Fresh::yes, d); },
            [](World& w, Deadline d, std::stop_token s, auto done) {
                read_node_async(w.session, "/value", Fresh::yes, d, s, done);
            }),
    };
    const std::vector<Form> waits{
        CALL_WITH(Change, counter, compare_and_set, 3, 4),
        CALL_WITH(Change, counter, exchange, 9),
        form<Change>(
            "subtract", [](World& w, Deadline d) { return w.counter.try_add_until(-2, d); },
            [](World& w, Deadline d, std::stop_token s, auto done) { w.counter.subtract_async(2, d, s, done); }),
        form<bool>(
            "wait_until_free", [](World& w, Deadline d) { return wait_until_free(w.session, "/free", d); },
            [](World& w, Deadline d, std::stop_token s, auto done) {
                wait_until_free_async(w.session, "/free", d, s, done);
            }),
        CALL(bool, barrier, wait),
    };
    for (auto one : waits) {
        one.unreachable = false;
        all.push_back(one);
    }
    all.push_back(CALL(bool, barrier, set));
    all.push_back(CALL(bool, barrier, remove));
    return all;
}

class AsyncFormsTest : public ServedTest {
protected:
    void plant() {
        nodes = {{"/", {}}};
        watched.clear();
        zxid = 10;
        const auto queue = [this](const std::string& directory, const std::string& base) {
            put(directory);
            for (const std::string number : {"1", "2"}) {
                put(directory + "/_c_00000000-0000-4000-8000-00000000000" + number + "-" + base + "000000000" + number);
            }
        };
        // /lock is the 11th change, the node in front of it the 12th.
        queue("/lock", "lock-");
        queue("/other", "lock-");
        put("/semaphore");
        queue("/semaphore/locks", "lock-");
        put("/semaphore/leases", R"({"v":1,"leases":2})");
        put("/semaphore/leases/_c_00000000-0000-4000-8000-000000000009-lease-0");
        queue("/election", "latch-");
        put("/group");
        put("/group/a", "one");
        put("/group/b", "two");
        put("/counter", std::string("\0\0\0\0\0\0\0\3", 8));
        put("/value", "content");
        put("/count", std::string("\0\0\0\4", 4));
        asked.clear();
    }
    std::vector<std::string> asked_since() {
        auto out = std::exchange(asked, {});
        for (auto& one : out) {  // a new name each time
            one = std::regex_replace(one, std::regex("[0-9a-f-]{36}-(commit|change)"), "<new>");
        }
        return out;
    }
    std::string blocking(const Form& form, World& world, Deadline deadline) {
        std::string what;
        served([&] {
            try {
                what = form.blocking(world, deadline);
            } catch (const Error&) {
                what = text_of(std::current_exception());
            }
        });
        return what;
    }
};

#undef CALL
#undef CALL_WITH
#undef FREE

}  // namespace zkrecipes::testing
