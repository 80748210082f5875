#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <zkrecipes/fenced_register.hpp>

namespace zkrecipes::chaos {

/// A resource that checks fencing tokens: a counter for each lock, kept in this process by the library's
/// FencedRegister, and reached by the actors over a socket. An increment is a read and a write, each with the holder's
/// token; what one of them raises, the other one is measured by.
class RegisterServer {
public:
    RegisterServer();
    ~RegisterServer();
    RegisterServer(const RegisterServer&) = delete;
    RegisterServer& operator=(const RegisterServer&) = delete;

    /// For RegisterClient: a name that lives in no file system, so nothing of it is left.
    const std::string& name() const noexcept { return name_; }

    /// What the counter is, and how many increments were let in for each token.
    struct Account {
        std::int64_t value = 0;
        std::map<std::int64_t, std::int64_t> accepted;
    };
    std::map<int, Account> accounts() const;

private:
    void serve();
    void hear(int descriptor, std::string& unread);
    std::string answer(const std::string& request);

    std::string name_;
    int listener_ = -1;
    int wake_[2] = {-1, -1};
    FencedRegister fences_;
    mutable std::mutex mutex_;  // guards accounts_
    std::map<int, Account> accounts_;
    std::jthread thread_;
};

/// One connection to it; for one thread. Blocks until answered. Throws std::runtime_error when the server is gone.
class RegisterClient {
public:
    explicit RegisterClient(const std::string& name);
    ~RegisterClient();
    RegisterClient(const RegisterClient&) = delete;
    RegisterClient& operator=(const RegisterClient&) = delete;

    /// The counter; -1: the token was refused.
    std::int64_t read(int lock, std::int64_t token);
    std::int64_t read_shared(int lock, std::int64_t token);
    /// False: refused.
    bool write(int lock, std::int64_t token, std::int64_t value);

private:
    std::int64_t ask(const std::string& request);

    int descriptor_ = -1;
};

}  // namespace zkrecipes::chaos
