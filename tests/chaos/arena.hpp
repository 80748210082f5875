#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include <zkrecipes/testenv/gate.hpp>
#include <zkrecipes/testenv/scratch.hpp>
#include <zkrecipes/testenv/zk_ensemble.hpp>

namespace zkrecipes::chaos {

/// The wall clock of one process or more, which the shim (clock_shim.cpp) reads from a file.
void set_clock(const std::string& file, std::chrono::seconds wrong_by);

/// What this machine lets us do, found out once; a reason where it does not.
struct Means {
    std::string no_disk;   // full disks; empty: they can be arranged
    std::string no_clock;  // clock jumps

    /// Takes this process into a mount namespace of its own, so that small disks can be mounted which nobody else sees
    /// and which are gone with the last process in it. Call it before there is another thread.
    static Means find();
};

/// The ensemble of some rounds: its members reach each other through gates, each has a small disk of its own for its
/// transactions and a wall clock of its own, as far as the machine allows it.
class Arena {
public:
    struct Options {
        int servers = 3;
        bool reaper = false;  // containers are looked for every 10 ms
    };
    static constexpr std::chrono::milliseconds kTick{500};

    Arena(const Options& options, const Means& means);
    ~Arena();

    testenv::ZkEnsemble& ensemble() noexcept { return *ensemble_; }
    const Options& options() const noexcept { return options_; }
    int size() const { return ensemble_->size(); }
    /// Gates of a new client, one for each member; it knows nothing else.
    std::vector<testenv::Gate> make_gates() const;

    int leader();    // waits for one
    int follower();  // a random one would be as good: the next in turn
    int wait_whole();

    void fill_disk(int member);
    void free_disk(int member);
    /// Whether wall clocks can be set; those of members are in these files.
    bool has_clocks() const noexcept { return clocks_; }
    std::string clock_of(int member) const;

private:
    const Options options_;
    const bool disks_;
    const bool clocks_;
    std::unique_ptr<testenv::ZkEnsemble> ensemble_;
    int turn_ = 0;
};

}  // namespace zkrecipes::chaos
