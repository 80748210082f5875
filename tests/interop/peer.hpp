#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace zkrecipes::test {

/// The answer to one command, which may still be on its way. Copies mean the same answer.
class Answer {
public:
    using Fields = std::vector<std::string>;

    Answer() : state_(std::make_shared<State>()) {}
    bool done() const;
    /// Waits for it, long. Throws std::runtime_error where the command failed, or with the last words of a peer that
    /// died.
    Fields fields() const;
    /// The same for commands that answer yes or no.
    bool yes() const;

    void set(Fields fields) const;       // the first of the two counts
    void fail(std::string error) const;  // what fields() throws

private:
    struct State {
        mutable std::mutex mutex;
        std::condition_variable changed;
        bool done = false;
        Fields fields;
        std::string error;
    };
    std::shared_ptr<State> state_;
};

/// Curator's names, or kazoo's.
enum class Names { curator, kazoo };

/// One client of ZooKeeper, in whatever language: a session of its own, and a thread of its own that does its commands
/// one after the other.
///
/// `kind` says which lock is meant: mutex, read, write; semaphore_mutex and semaphore2 (one lease of two), which
/// kazoo does not have with Curator's nodes; latch, selector and election, of Curator and kazoo. To add one, name it in
/// three places: lock_of_kind() in peer.cpp, make() in CuratorPeer.java and make() in kazoo_peer.py; the commands are
/// the same for all.
class Client {
public:
    using Fields = Answer::Fields;
    static constexpr std::chrono::milliseconds kForever{-1};

    virtual ~Client() = default;
    virtual Answer ask(const Fields& words) = 0;

    /// Of the peer's library: 5.4 is {5, 4}.
    std::pair<int, int> version() {
        const auto fields = ask({"version"}).fields();
        return {std::stoi(fields.at(0)), std::stoi(fields.at(1))};
    }
    Answer acquire(const std::string& kind, const std::string& path, std::chrono::milliseconds wait = kForever) {
        return ask({"acquire", kind, path, std::to_string(wait.count())});  // yes or no
    }
    Answer release(const std::string& kind, const std::string& path) { return ask({"release", kind, path}); }
    /// What the nodes of the contenders say, in the order of the queue.
    Answer participants(const std::string& kind, const std::string& path) { return ask({"participants", kind, path}); }
    /// Increments the number in a file, under the lock alone, again and again.
    Answer count(const std::string& kind, const std::string& path, int rounds, const std::string& file) {
        return ask({"count", kind, path, std::to_string(rounds), file});
    }
    /// Reads it under the lock twice; fails where it changed in between.
    Answer look(const std::string& kind, const std::string& path, int rounds, const std::string& file) {
        return ask({"look", kind, path, std::to_string(rounds), file});
    }
};

/// A client of this library.
std::unique_ptr<Client> make_cpp_client(const std::string& hosts, std::chrono::milliseconds timeout,
                                        Names names = Names::curator);

enum class PeerLanguage { curator, kazoo };

/// Why there can be no such peer here; empty when there can.
std::string why_no_peer(PeerLanguage language);

/// A process of another language that runs many clients. Killed with this object, and by the kernel when the test dies,
/// however that happens. Make it on the main thread: the kernel takes the end of the thread that forked for the end of
/// the parent.
class PeerProcess {
public:
    explicit PeerProcess(PeerLanguage language);
    /// Any program that takes the same commands.
    explicit PeerProcess(const std::vector<std::string>& argv);
    PeerProcess(const PeerProcess&) = delete;
    PeerProcess& operator=(const PeerProcess&) = delete;
    ~PeerProcess();

    pid_t pid() const noexcept { return pid_; }
    /// Must not outlive this object.
    std::unique_ptr<Client> client(const std::string& hosts, std::chrono::milliseconds timeout,
                                   Names names = Names::curator);
    Answer ask(const std::string& client, const Answer::Fields& words);
    /// SIGKILL. What is unanswered fails.
    void kill();

private:
    void start(const std::vector<std::string>& argv);
    void read_answers();
    void take_answer(const std::string& line);
    void fail_all(const std::string& why);

    pid_t pid_ = -1;
    int commands_ = -1;
    int answers_ = -1;
    int clients_ = 0;
    std::mutex mutex_;  // guards what follows
    long asked_ = 0;
    bool ended_ = false;
    std::map<std::string, Answer> open_;
    std::thread reader_;
};

}  // namespace zkrecipes::test
