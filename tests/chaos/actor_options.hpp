#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

namespace zkrecipes::chaos {

/// The command line of an actor: key=value.
class ActorOptions {
public:
    ActorOptions(int argc, char** argv) {
        for (int i = 1; i < argc; ++i) {
            const std::string argument = argv[i];
            const auto equals = argument.find('=');
            if (equals == std::string::npos) throw std::invalid_argument("not key=value: " + argument);
            values_[argument.substr(0, equals)] = argument.substr(equals + 1);
        }
    }
    std::string text(const std::string& key, const std::string& otherwise = {}) const {
        const auto found = values_.find(key);
        return found == values_.end() ? otherwise : found->second;
    }
    int number(const std::string& key, int otherwise = 0) const {
        const auto found = values_.find(key);
        return found == values_.end() ? otherwise : std::atoi(found->second.c_str());
    }

    std::string role() const { return text("role"); }
    std::string hosts() const { return text("hosts"); }
    std::chrono::milliseconds timeout() const { return std::chrono::milliseconds(number("timeout-ms", 4000)); }
    int actor() const { return number("actor"); }
    /// The locks [first_lock, first_lock + locks): on the board by number, in ZooKeeper at lock_path().
    int first_lock() const { return number("first-lock"); }
    int locks() const { return number("locks", 1); }
    std::string lock_path(int lock) const { return text("dir") + "/" + std::to_string(lock); }

private:
    std::map<std::string, std::string> values_;
};

/// What the actor tells the controller: one line each, on a pipe of its own, so that nothing that is logged gets in
/// between.
class Reply {
public:
    explicit Reply(int descriptor) : out_(fdopen(descriptor, "w")) {
        if (out_ == nullptr) throw std::runtime_error("no descriptor for replies");
        setvbuf(out_, nullptr, _IOLBF, 4096);
    }
    void say(const std::string& line) {
        const std::lock_guard lock(mutex_);
        std::fprintf(out_, "%s\n", line.c_str());
    }

private:
    std::mutex mutex_;  // guards out_
    std::FILE* out_;
};

}  // namespace zkrecipes::chaos
