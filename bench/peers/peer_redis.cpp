// The side of Redis in scripts/peers: one contender, with a connection of its own.
//     peer_redis HOST PORT KEY
// The lock is the one that the documentation of Redis describes: SET NX PX with a random value, and a script that
// deletes the key if it still has this value. A client that finds the lock held tries again after a random time.
#include <unistd.h>

#include <hiredis/hiredis.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "bench/peers/contender.hpp"

namespace {

constexpr const char* kRelease =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
constexpr const char* kTtl = "30000";  // ms

struct FreeReply {
    void operator()(void* reply) const { ::freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "peers: Redis failed: %s\n", why.c_str());
    std::exit(1);
}

class RedisLock {
public:
    RedisLock(const char* host, int port, std::string key)
        : redis_(::redisConnect(host, port)), key_(std::move(key)), random_(std::random_device{}()) {
        if (redis_ == nullptr || redis_->err != 0) fail(redis_ == nullptr ? "no memory" : redis_->errstr);
        ::redisEnableKeepAlive(redis_);
        script_ = command({"SCRIPT", "LOAD", kRelease})->str;
    }
    RedisLock(const RedisLock&) = delete;
    RedisLock& operator=(const RedisLock&) = delete;
    ~RedisLock() { ::redisFree(redis_); }

    void acquire() {
        value_ = std::to_string(random_()) + "-" + std::to_string(random_());
        while (command({"SET", key_, value_, "NX", "PX", kTtl})->type == REDIS_REPLY_NIL) {
            // 100 ms is the pause of Lock in redis-py; the documentation of Redis advises a random one.
            std::this_thread::sleep_for(std::chrono::microseconds(50000 + random_() % 100000));
        }
    }

    void release() {
        if (command({"EVALSHA", script_, "1", key_, value_})->integer != 1) fail("the lock was lost");
    }

private:
    Reply command(const std::vector<std::string>& words) {
        std::vector<const char*> texts;
        std::vector<std::size_t> sizes;
        for (const std::string& word : words) {
            texts.push_back(word.data());
            sizes.push_back(word.size());
        }
        Reply reply(static_cast<redisReply*>(
            ::redisCommandArgv(redis_, static_cast<int>(words.size()), texts.data(), sizes.data())));
        if (!reply) fail(redis_->errstr);
        if (reply->type == REDIS_REPLY_ERROR) fail(reply->str);
        return reply;
    }

    redisContext* redis_;
    std::string key_;
    std::string script_;
    std::string value_;
    std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    RedisLock lock(argv[1], std::atoi(argv[2]), argv[3]);
    zkrecipes::bench::contend([&] { lock.acquire(); }, [&] { lock.release(); });
    return 0;
}
