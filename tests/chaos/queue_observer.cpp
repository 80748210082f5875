#include "chaos/queue_observer.hpp"

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <stdexcept>

#include "chaos/raw_handle.hpp"

namespace zkrecipes::chaos {

namespace {

// The longest that servers with a tick of two seconds allow: the observer is to outlive the faults it observes.
constexpr std::chrono::milliseconds kTimeout{40'000};

}  // namespace

/// One session on one server.
class QueueObserver::Eye {
public:
    Eye(QueueObserver& owner, std::string server) : owner_(owner), handle_(server, kTimeout) {}

    RawHandle& handle() noexcept { return handle_; }
    bool connected() const noexcept { return handle_.connected(); }

    void add(int lock, const std::string& path) {
        auto look = std::make_unique<Look>();
        look->eye = this;
        look->lock = lock;
        look->path = path;
        Look* raw = look.get();
        {
            const std::lock_guard guard(looks_mutex_);
            looks_[lock] = std::move(look);
        }
        list(*raw);
    }

    // A list that failed, or whose answer the server has forgotten (ZOOKEEPER-4537), is asked for again; the read of
    // "/" is what wakes such a server.
    void nudge() {
        if (!connected()) return;
        handle_.ask([](zhandle_t* handle) {
            return zoo_aexists(
                handle, "/", 0, [](int, const struct Stat*, const void*) {}, nullptr);
        });
        std::vector<Look*> idle;
        {
            const std::lock_guard guard(looks_mutex_);
            for (auto& [lock, look] : looks_) {
                if (!look->watching.exchange(true)) idle.push_back(look.get());
            }
        }
        for (auto* look : idle) list(*look);
    }

    /// One list after a sync, waited for. False: no answer in time.
    bool list_now(int lock, const std::string& path) {
        if (!connected()) return false;
        auto answer = std::make_shared<Answer>();
        answer->eye = this;
        answer->lock = lock;
        auto* context = new std::shared_ptr<Answer>(answer);
        const int rc = handle_.ask([&](zhandle_t* handle) {
            zoo_async(
                handle, path.c_str(), [](int, const char*, const void*) {}, nullptr);
            return zoo_aget_children(handle, path.c_str(), 0, &Eye::on_answer, context);
        });
        if (rc != ZOK) {
            delete context;
            return false;
        }
        std::unique_lock guard(answer->mutex);
        return answer->changed.wait_for(guard, std::chrono::seconds(5), [&] { return answer->rc.has_value(); }) &&
               *answer->rc == ZOK;
    }

    std::map<int, std::set<std::string>> seen;  // by lock; guarded by the observer's mutex

private:
    struct Look {
        Eye* eye = nullptr;
        int lock = 0;
        std::string path;
        std::atomic<bool> watching{true};
    };

    struct Answer {
        Eye* eye = nullptr;
        int lock = 0;
        std::mutex mutex;
        std::condition_variable changed;
        std::optional<int> rc;
    };

    static std::set<std::string> names_of(const String_vector* names) {
        std::set<std::string> present;
        for (int i = 0; names != nullptr && i < names->count; ++i) present.insert(names->data[i]);
        return present;
    }

    void list(Look& look) {
        const int rc = handle_.ask([&](zhandle_t* handle) {
            return zoo_awget_children(handle, look.path.c_str(), &Eye::on_event, &look, &Eye::on_list, &look);
        });
        if (rc != ZOK) look.watching = false;
    }

    static void on_event(zhandle_t*, int type, int, const char*, void* context) {
        auto& look = *static_cast<Look*>(context);
        if (type == ZOO_SESSION_EVENT) return;  // the watch itself is still there
        look.eye->list(look);
    }

    static void on_list(int rc, const String_vector* names, const void* context) {
        auto& look = *static_cast<Look*>(const_cast<void*>(context));
        if (rc != ZOK) {
            look.watching = false;
            return;
        }
        look.eye->owner_.note(*look.eye, look.lock, names_of(names));
    }

    // Noted here, on the thread of the watches' lists, so that an older list is never taken for a newer one.
    static void on_answer(int rc, const String_vector* names, const void* data) {
        const std::unique_ptr<std::shared_ptr<Answer>> context(
            static_cast<std::shared_ptr<Answer>*>(const_cast<void*>(data)));
        Answer& answer = **context;
        if (rc == ZOK) answer.eye->owner_.note(*answer.eye, answer.lock, names_of(names));
        const std::lock_guard guard(answer.mutex);
        answer.rc = rc;
        answer.changed.notify_all();
    }

    QueueObserver& owner_;
    std::mutex looks_mutex_;                      // guards the map, not the looks
    std::map<int, std::unique_ptr<Look>> looks_;  // never removed from: the C client may still refer to them
    RawHandle handle_;  // last: destroyed first, which joins its thread; nothing refers to the looks after that
};

QueueObserver::QueueObserver(const std::vector<std::string>& servers) {
    for (const auto& server : servers) eyes_.push_back(std::make_unique<Eye>(*this, server));
    for (auto& eye : eyes_) eye->handle().wait_connected(std::chrono::seconds(20));
    keeper_ = std::jthread([this](const std::stop_token& stop) { keep_looking(stop); });
}

QueueObserver::~QueueObserver() {
    keeper_.request_stop();
    keeper_.join();
}

void QueueObserver::watch(const std::string& dir, int first_lock, int locks) {
    const auto eye = std::find_if(eyes_.begin(), eyes_.end(), [](auto& candidate) { return candidate->connected(); });
    Eye& maker = eye == eyes_.end() ? *eyes_.front() : **eye;
    for (int lock = first_lock; lock < first_lock + locks; ++lock) {
        const std::string path = dir + "/" + std::to_string(lock);
        maker.handle().make_path(path);
        {
            const std::lock_guard guard(mutex_);
            queues_[lock].path = path;
        }
        // A server that does not know the directory yet answers "no node"; the keeper asks it again.
        for (auto& each : eyes_) each->add(lock, path);
    }
}

void QueueObserver::note(Eye& eye, int lock, const std::set<std::string>& present) {
    const Stamp now = stamp_now();
    const std::lock_guard guard(mutex_);
    const auto found = queues_.find(lock);
    if (found == queues_.end()) return;
    auto& nodes = found->second.nodes;
    auto& seen = eye.seen[lock];
    for (const auto& node : seen) {
        auto& sighting = nodes[node];
        if (!present.contains(node) && sighting.gone_at == 0) sighting.gone_at = now;
    }
    const std::string* head = nullptr;
    for (const auto& node : present) {
        auto& sighting = nodes[node];
        if (sighting.first_seen_at == 0) {
            sighting.lock = lock;
            sighting.node = node;
            sighting.first_seen_at = now;
        }
        if (head == nullptr || sequence_of(node) < sequence_of(*head)) head = &node;
    }
    if (head != nullptr) nodes[*head].was_head = true;
    seen = present;
}

int QueueObserver::queue_length(int lock) const {
    const std::lock_guard guard(mutex_);
    std::size_t longest = 0;
    for (const auto& eye : eyes_) {
        const auto found = eye->seen.find(lock);
        if (found != eye->seen.end()) longest = std::max(longest, found->second.size());
    }
    return static_cast<int>(longest);
}

std::vector<Sighting> QueueObserver::sightings(int first_lock, int locks) {
    std::map<int, std::string> paths;
    {
        const std::lock_guard guard(mutex_);
        for (const auto& [lock, queue] : queues_) {
            if (lock >= first_lock && lock < first_lock + locks) paths[lock] = queue.path;
        }
    }
    for (const auto& [lock, path] : paths) {
        for (auto& eye : eyes_) eye->list_now(lock, path);
    }
    std::vector<Sighting> all;
    const std::lock_guard guard(mutex_);
    for (const auto& [lock, path] : paths) {
        for (const auto& [node, sighting] : queues_[lock].nodes) all.push_back(sighting);
    }
    return all;
}

void QueueObserver::keep_looking(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        for (auto& eye : eyes_) eye->nudge();
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
}

}  // namespace zkrecipes::chaos
