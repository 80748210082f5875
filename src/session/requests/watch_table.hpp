#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/client.hpp"
#include "session/common/budget.hpp"

namespace zkrecipes::internal {

/// Who asked for a watch, and is told of it once. See SessionCore::watch_node.
struct WatchListener {
    /// The watch is in place (ok), the node is not there (no_node), or the read failed: not watching. An existence and
    /// a directory are watched also where there is none.
    std::function<void(Rc, const std::string& data, const NodeStat&)> ready;
    /// Something happened to the node, once; the watch is used up. Not called for session events.
    std::function<void(WatchEventType)> fired;
    /// Instead of `ready`, for a listener that watches children and wants their names.
    std::function<void(Rc, const std::vector<std::string>& names, const NodeStat&)> listed{};
};
using WatchId = std::uint64_t;  // 0: none

enum class WatchKind : std::uint8_t {
    node,       // it was deleted, or its data changed; the data comes with `ready`
    existence,  // the same; and where it is not there, it was created
    children,   // a child came or went, or it was deleted; how many there are comes with `ready`
    directory   // the same; and where it is not there, it was created
};

/// One watch on the server per path and facet (the node itself, its children), however many ask for it, and none when
/// no listener asks for anything of the path any more.
///
/// Every listener is made ready by a read that sets the watch; several that ask while one read is on its way share it.
/// ZooKeeper delivers events and answers in the order in which they happened, hence an event that arrives before the
/// answer to a read is older than that read, and concerns only listeners that were ready.
///
/// Pure but for calling the listeners; what must be sent is handed to `Port`, which must not call back at once.
class WatchTable {
public:
    class Port {
    public:
        virtual ~Port() = default;
        virtual void send_get_watch(const std::string& path, std::uint64_t ticket) = 0;       // answer: on_read
        virtual void send_children_watch(const std::string& path, std::uint64_t ticket) = 0;  // answer: on_read
        virtual void send_exists_watch(const std::string& path, std::uint64_t ticket) = 0;    // answer: on_read
        virtual void send_remove_watches(const std::string& path, std::uint64_t ticket) = 0;  // answer: on_removed
        virtual bool can_send() const = 0;
    };

    explicit WatchTable(Port& port, std::size_t budget = Budget::kLimit) : port_(port), budget_(budget) {}

    bool room_for(std::size_t path_bytes) const { return budget_.fits(path_bytes); }
    /// 0: over the budget, nothing was done.
    WatchId add(const std::string& path, WatchListener listener, WatchKind kind = WatchKind::node);
    /// Neither function of the listener is called from now on. Harmless with an unknown id.
    void remove(WatchId id) { drop(id, true); }
    /// From now on another listener is told of this watch. `ready` is called only if it was not yet.
    void hand_over(WatchId id, WatchListener listener);
    /// As remove, where the node is about to be deleted by us, which uses up the watch without a further request.
    void abandon(WatchId id) { drop(id, false); }

    /// Watches the node for nobody, if that can be done: see guarded(). Nothing is asked for where a guard of the node
    /// `czxid` is in place. It is not taken away, as that would cost a request; it ends when something happens to the
    /// node, with a reconnect, and when a watch on the children is taken off. All guards together take a quarter of the
    /// budget at most.
    void guard(const std::string& path, std::int64_t czxid);
    /// The czxid of the node if it has a guard, otherwise 0. Then this very node was there when the servers executed
    /// the request that they have just answered, if that was sent behind guard(). (A server may keep an event to
    /// itself, if an operator has taken away the right to read the node meanwhile.)
    std::int64_t guarded(const std::string& path) const;

    void on_read(std::uint64_t ticket, Rc rc, const std::string& data, const NodeStat& stat,
                 const std::vector<std::string>& names = {});
    void on_removed(std::uint64_t ticket, Rc rc);
    void on_event(WatchEventType type, const std::string& path);
    /// The same session is connected again; the client has registered its watches again.
    void on_connected();
    /// All watches ended with the session.
    void reset();

    bool unused() const noexcept;  // but for guards
    std::size_t paths() const noexcept { return entries_.size(); }
    std::size_t listeners() const noexcept { return listeners_.size(); }
    std::size_t bytes() const noexcept { return budget_.used(); }
    std::size_t unanswered() const noexcept { return tickets_.size(); }

private:
    struct Facet {
        bool armed = false;           // the server holds a watch for us, as far as we know
        bool asks_existence = false;  // the read on its way is that for a missing node
        bool counted = false;         // in the budget: each facet is registered anew by itself
        std::uint64_t reading = 0;    // ticket of the read on its way
        std::vector<WatchId> ready;   // covered by the watch in place
        std::vector<WatchId> arming;  // waiting for the answer to `reading`
        std::vector<WatchId> queued;  // came while a removal was on its way

        bool asked_for() const noexcept { return !ready.empty() || !arming.empty() || !queued.empty(); }
    };
    struct Entry {
        Facet itself;
        Facet children;
        bool abandoned = false;      // ends by itself with the node
        std::uint64_t removing = 0;  // ticket of the removal on its way, which takes off all watches of the path
        bool guarded = false;        // the watch on the node itself stays without a listener
        std::int64_t guard = 0;      // of which node, if it is known to be in place: its czxid

        Facet& facet(bool of_children) noexcept { return of_children ? children : itself; }
        bool asked_for() const noexcept { return itself.asked_for() || children.asked_for(); }
        bool reading() const noexcept { return itself.reading != 0 || children.reading != 0; }
        bool armed() const noexcept { return itself.armed || children.armed; }
    };
    struct Listening {
        std::string path;
        WatchListener listener;
        WatchKind kind;
    };
    struct Issued {
        std::string path;
        bool of_children;
    };
    using Entries = std::unordered_map<std::string, Entry>;

    void drop(WatchId id, bool remove_from_server);
    bool count(const std::string& path, Entry& entry, WatchKind kind);
    void start_read(const std::string& path, Entry& entry, bool of_children);
    std::vector<WatchId> answered(const std::string& path, Entry& entry, bool of_children, Rc rc);
    bool watches(WatchId id, Rc rc, bool asked_existence) const;
    void settle(Entries::iterator entry);
    WatchListener take(WatchId id);

    Port& port_;
    Budget budget_;
    Entries entries_;
    std::unordered_map<WatchId, Listening> listeners_;
    std::unordered_map<std::uint64_t, Issued> tickets_;
    WatchId last_id_ = 0;
    std::uint64_t last_ticket_ = 0;
};

}  // namespace zkrecipes::internal
