// frozen_writer [ROUNDS [SEED]]: two processes take turns in leading, and write guarded transactions all the time. In
// each round the leader is frozen with SIGSTOP past its session, wherever it is, and continued when the other one has
// been writing for a while. Its next write must fail, it must have been asked to stop and told of the loss, and nothing
// that it wrote may come after the first write of the other. Exit code 0: so it was.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/testenv/available.hpp>
#include <zkrecipes/testenv/error.hpp>
#include <zkrecipes/testenv/raw_client.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "chaos/actor_process.hpp"
#include "chaos/board.hpp"

namespace {

using namespace std::chrono_literals;
using namespace zkrecipes::chaos;

constexpr std::chrono::milliseconds kMaxWait = 60s;

/// What a writer says: a word, its token, the version of one of its writes.
struct Word {
    std::int64_t token = 0;
    std::int32_t version = 0;
};
Word parse(const std::string& line) {
    std::istringstream text(line);
    std::string word;
    Word out;
    text >> word >> out.token >> out.version;
    return out;
}

class Rounds {
public:
    enum class Guard { by_the_lock, by_something_else };
    Rounds(const zkrecipes::testenv::ZkServer& server, std::uint64_t seed, Guard guard)
        : random_(seed), observer_(server.connect_string()) {
        observer_.remove_tree("/frozen");
        observer_.make_path("/frozen/anchor/x-lock-0000000000");
        observer_.create("/frozen/data");
        for (int i = 0; i < 2; ++i) {
            std::vector<std::string> arguments = {"role=writer",
                                                  "hosts=" + server.connect_string(),
                                                  "timeout-ms=800",
                                                  "tick-ms=100",
                                                  "lock=/frozen/lock",
                                                  "data=/frozen/data",
                                                  "actor=" + std::to_string(i)};
            if (guard == Guard::by_something_else)
                arguments.push_back("guard=zkr1:1:x/frozen/anchor/x-lock-0000000000");
            writers_.emplace_back(board_, arguments);
            writers_.back().expect("connected", kMaxWait);
            if (i == 0) writers_[0].expect("first", kMaxWait);
        }
    }

    void run_one() {
        const Frozen frozen = freeze_a_holder();
        frozen.holder->resume();
        const Word last = expect_from(*frozen.holder, "refused", frozen.own.token);
        await_writes(version() + 3);  // of later holders, who find any write in between
        if (last.version >= frozen.next.version) {
            throw std::runtime_error("STALE WRITE: version " + std::to_string(last.version) +
                                     " was acknowledged to the former holder, the later one began with " +
                                     std::to_string(frozen.next.version));
        }
        if (parse("data " + observer_.get("/frozen/data")->data).token < frozen.next.token) {
            throw std::runtime_error("STALE WRITE: the data are those of a former holder");
        }
    }

    /// The former holder goes on writing, and the later one must say so.
    void expect_caught() {
        const Frozen frozen = freeze_a_holder();
        frozen.holder->resume();
        frozen.other->expect("error between version", kMaxWait);
    }

    void finish() {
        for (auto& writer : writers_) {
            if (writer.quit(kMaxWait) != 0) throw std::runtime_error("a writer failed in the end");
        }
    }

private:
    struct Frozen {
        ActorProcess* holder = nullptr;
        ActorProcess* other = nullptr;
        Word own, next;  // first writes of the frozen holder, and of the one after it
    };

    /// Past its session: the other one holds and writes. On a machine that is busy enough a holder loses its session
    /// without our doing; then it is not the one that we want.
    Frozen freeze_a_holder() {
        for (int attempt = 0; attempt < 20; ++attempt) {
            Frozen out;
            const Word first = parse(writers_[0].last("first")), second = parse(writers_[1].last("first"));
            out.holder = &writers_[first.token > second.token ? 0 : 1];
            out.other = &writers_[first.token > second.token ? 1 : 0];
            out.own = first.token > second.token ? first : second;
            await_writes(out.own.version + 3);
            wait_for(await([&] { return observer_.children("/frozen/lock")->size() == 2; }, kMaxWait),
                     "the other one does not wait for the lock");
            std::this_thread::sleep_for(
                std::chrono::microseconds(random_() % 5000));  // anywhere in a write, or between
            if (kill(out.holder->pid(), SIGSTOP) != 0) throw std::runtime_error("the holder cannot be stopped");
            wait_for(await([&] { return out.holder->is_stopped(); }, kMaxWait), "the holder does not stop");
            const bool held = parse(out.holder->last("refused")).token != out.own.token;
            if (held && parse(out.other->last("first")).token < out.own.token) {
                out.next = expect_from(*out.other, "first", out.own.token + 1);
                await_writes(out.next.version + 3);
                return out;
            }
            out.holder->resume();
        }
        throw std::runtime_error("no holder keeps its session for long enough; is the machine too busy?");
    }
    /// The first such word with this token or a larger one.
    static Word expect_from(ActorProcess& writer, const std::string& word, std::int64_t token) {
        for (;;) {
            const Word said = parse(writer.expect(word, kMaxWait));
            if (said.token >= token) return said;
        }
    }
    std::int32_t version() { return observer_.get("/frozen/data")->stat.version; }
    void await_writes(std::int32_t wanted) {
        wait_for(await([&] { return version() >= wanted; }, kMaxWait), "nobody writes");
    }
    static void wait_for(bool done, const char* complaint) {
        if (!done) throw std::runtime_error(complaint);
    }

    std::mt19937_64 random_;
    zkrecipes::testenv::RawClient observer_;
    const Board board_ = Board::create();
    std::vector<ActorProcess> writers_;
};

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);  // a writer that has ended is noticed by what it did not say
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : std::random_device{}();
    if (rounds <= 0) {
        std::fprintf(stderr, "usage: %s [ROUNDS [SEED]]\n", argv[0]);
        return 64;
    }
    int done = 0;
    try {
        const zkrecipes::testenv::ZkServer server;
        Rounds(server, seed, Rounds::Guard::by_something_else).expect_caught();
        Rounds trial(server, seed, Rounds::Guard::by_the_lock);
        for (; done < rounds; ++done) trial.run_one();
        trial.finish();
        std::printf("%d rounds, 0 stale writes, every loss told (seed %llu)\n", done,
                    static_cast<unsigned long long>(seed));
        return 0;
    } catch (const zkrecipes::testenv::MissingDependency& error) {
        std::fprintf(stderr, "frozen_writer: %s\n", error.what());
        return 77;  // for ctest: skipped
    } catch (const std::exception& error) {
        std::fprintf(stderr, "frozen_writer: round %d (seed %llu): %s\n", done, static_cast<unsigned long long>(seed),
                     error.what());
        return 1;
    }
}
