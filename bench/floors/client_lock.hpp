#pragma once

#include <zookeeper/zookeeper.h>

#include <functional>
#include <string>

namespace zkrecipes::bench {

// The least of a lock on the C client, for either of its libraries. It has no lease and no retries. Any error ends the
// program.

/// Ends the program if `rc` is an error.
void check(int rc, const char* what);

/// A session of the C client.
class ClientSession {
public:
    /// `connected` is called as all callbacks of the C client are.
    ClientSession(const std::string& hosts, std::function<void()> connected);
    ~ClientSession() { zookeeper_close(handle_); }
    ClientSession(const ClientSession&) = delete;
    ClientSession& operator=(const ClientSession&) = delete;

    zhandle_t* handle() const { return handle_; }

private:
    static void on_event(zhandle_t*, int type, int state, const char*, void* self);

    std::function<void()> connected_;
    zhandle_t* handle_ = nullptr;
};

/// One contender. The C client calls `granted` and `released` as its callbacks, which may send further requests. It
/// must not be destroyed while answers are missing.
class ClientLock {
public:
    using Callback = std::function<void()>;
    /// Creates the directory, and does not wait for it.
    ClientLock(zhandle_t* session, std::string directory, Callback granted, Callback released);
    ClientLock(const ClientLock&) = delete;
    ClientLock& operator=(const ClientLock&) = delete;

    /// Sends two requests, of one round trip: create, list. If there is a predecessor, a third one watches it, and the
    /// event alone is the grant.
    void acquire();
    /// Sends one request.
    void release();

private:
    static void on_created(int rc, const char* node, const void* self);
    static void on_listed(int rc, const String_vector* names, const void* self);
    static void on_deleted(int rc, const void* self);
    void watch(const std::string& predecessor);

    zhandle_t* const session_;
    const std::string directory_;
    const Callback granted_;
    const Callback released_;
    std::string node_;
};

}  // namespace zkrecipes::bench
