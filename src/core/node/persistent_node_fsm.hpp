#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/persistent_node.hpp>

#include "client/client.hpp"
#include "core/operation/continuous_fsm.hpp"
#include "core/operation/types.hpp"

namespace zkrecipes::internal {

class PersistentNodePort : public virtual ContinuousPort {
public:
    virtual std::int64_t session_id() const = 0;

    virtual bool reserve() = 0;                                       // room for the node in the session's budget
    virtual void create(Ticket ticket, const std::string& data) = 0;  // on_created
    virtual void make_parent(Ticket ticket) = 0;                      // on_parent
    virtual bool watch(Ticket ticket) = 0;                            // on_node, on_fired; false: over the budget
    virtual void unwatch() = 0;                                       // harmless without a watch
    virtual void set(Ticket ticket, const std::string& data, std::int32_t version) = 0;  // on_set
    virtual void remove(Ticket ticket, std::int32_t version) = 0;  // of a former session; on_removed
    /// Deletes the node for good if it is still ours. Another session may have made its own in between, of which the
    /// watch tells later.
    virtual void give_back() = 0;
    virtual void note(const char* what) = 0;
    /// refusal() is set. Something for the log, and for whoever waits; it is tried again.
    virtual void refused(const std::string& why, int times) = 0;
    virtual void changed() = 0;   // state() or settled() changed
    virtual void finished() = 0;  // nothing of it is open any more
};

/// Keeps one ephemeral node there. Pure.
///
/// The leader answers the create, so "exists" is certain, and a create whose answer was lost is simply sent again. The
/// read behind the create tells the owner of a node that exists:
/// - Our present session: the node is kept. The answer was lost, or the node was made again meanwhile.
/// - A former session of this object: the node is deleted.
/// - Another session: the node is watched until it is gone.
///
/// Requests are answered by the function named beside them in PersistentNodePort, exactly once.
class PersistentNodeFsm final : public ContinuousFsm {
public:
    using State = PersistentNodeState;
    PersistentNodeFsm(PersistentNodePort& port, std::string data, bool create_parents)
        : port_(port), create_parents_(create_parents), wanted_(std::move(data)) {}

    void start() override;
    void set_data(std::string data);
    void close();

    // ---- the session ----
    void on_connected(bool same_session) override;
    void on_session_lost() override;
    void on_timer() override;
    void on_session_closed();

    // ---- answers ----
    void on_created(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_parent(Ticket ticket, Rc rc);
    void on_node(Ticket ticket, Rc rc, const std::string& data, const NodeStat& stat);
    void on_fired(Ticket ticket, WatchEventType type);
    void on_set(Ticket ticket, Rc rc, const NodeStat& stat);
    void on_removed(Ticket ticket, Rc rc);

    State state() const noexcept { return state_; }
    /// The node is there and says what is wanted.
    bool settled() const noexcept { return state_ == State::present && !dirty_; }
    const std::string& data() const noexcept { return wanted_; }
    Errc refusal() const noexcept { return refusal_; }  // while refused

private:
    enum class Step : std::uint8_t {
        away,      // not connected
        pausing,   // until the timer
        creating,  // the create was sent, and behind it the read
        making_parent,
        looking,  // the read was sent
        watching,
        removing_former,
        leaving,  // closed; the answer to the create is still to come
        finished
    };
    enum class Known : std::uint8_t { none, perhaps, there };  // of a node of ours in this session

    void go();
    void create();
    void look();
    void found_ours(const std::string& data, const NodeStat& stat);
    void found_others(const NodeStat& stat);
    void settled_again();
    void write();
    void trouble(Rc rc, const char* what);
    void refuse(Errc error, const std::string& why);
    void pause();
    void finish();
    void tell(State state);
    bool over() const noexcept { return step_ == Step::leaving || step_ == Step::finished; }
    Ticket next_ticket() noexcept { return ++ticket_; }
    bool current(Ticket ticket, Step step) const noexcept { return ticket == ticket_ && step_ == step; }

    PersistentNodePort& port_;
    const bool create_parents_;
    std::string wanted_;
    std::uint64_t wish_ = 1;  // counts what was wanted
    bool dirty_ = true;       // the node may say something else
    bool setting_ = false;    // a set is on its way
    std::uint64_t sent_ = 0;  // the wish that was sent last, by create or set
    std::int32_t sent_version_ = 0;
    Step step_ = Step::away;
    State state_ = State::missing;
    Known known_ = Known::none;
    Ticket ticket_ = 0;
    Ticket set_ticket_ = 0;
    bool read_first_ = false;           // the read was answered before the create: it is older
    std::int64_t session_ = 0;          // in which we create; 0: in none yet
    std::vector<std::int64_t> former_;  // those before it
    std::int32_t version_ = 0;          // of the node's data
    int parents_made_ = 0;              // in a row
    Errc refusal_{};
};

}  // namespace zkrecipes::internal
