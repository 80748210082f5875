#include "chaos/arena.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace zkrecipes::chaos {

namespace {

// In the directory of a server, before it starts: a clock that is right, and a disk for its transactions, in the
// namespace of this process. The server itself is started by testenv's keeper, which is not in it.
std::vector<std::string> launcher(bool disks) {
    const std::string prepare =
        "[ -f clock ] || head -c 8 /dev/zero >clock; mkdir -p txn; "
        "if [ -n \"$CHAOS_DISK\" ] && ! mountpoint -q txn; then mount -t tmpfs -o size=64m chaos txn || exit 1; fi; "
        "if [ -n \"$CHAOS_CLOCK_SHIM\" ]; then export LD_PRELOAD=$CHAOS_CLOCK_SHIM ZKRECIPES_CHAOS_CLOCK=clock; fi; "
        "exec \"$@\"";
    if (!disks) return {"sh", "-c", prepare, "sh"};
    return {"sh", "-c",
            "at=$PWD; exec nsenter --mount=/proc/" + std::to_string(getpid()) +
                "/ns/mnt -- sh -c 'cd \"$1\" || exit 1; shift; " + prepare + "' sh \"$at\" \"$@\"",
            "sh"};
}

testenv::EnsembleOptions ensemble_options(const Arena::Options& wanted, const Means& means) {
    testenv::EnsembleOptions options;
    options.servers = wanted.servers;
    options.gated_links = true;
    options.server.tick_time = Arena::kTick;
    options.server.init_limit = 20;
    options.server.sync_limit = 12;  // six seconds: a member that is cut off answers for longer than sessions live
    options.server.min_session_timeout = 2 * Arena::kTick;
    options.server.max_session_timeout = 20 * Arena::kTick;
    options.server.config_lines = {"dataLogDir=./txn"};
    options.server.launcher = launcher(means.no_disk.empty());
    if (means.no_disk.empty()) options.server.environment.emplace_back("CHAOS_DISK=1");
    if (means.no_clock.empty()) options.server.environment.emplace_back("CHAOS_CLOCK_SHIM=" CHAOS_CLOCK_SHIM);
    if (wanted.reaper) options.server.java_properties["znode.container.checkIntervalMs"] = "10";
    return options;
}

std::string try_mount() {
    const testenv::Scratch scratch;  // also starts testenv's keeper, which stays outside
    if (unshare(CLONE_NEWNS) != 0) return std::string("no mount namespace: ") + std::strerror(errno);
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("chaos", scratch.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
        return std::string("no mount: ") + std::strerror(errno);
    }
    umount2(scratch.path().c_str(), MNT_DETACH);
    if (access("/usr/bin/nsenter", X_OK) != 0) return "no nsenter";
    return {};
}

}  // namespace

void set_clock(const std::string& file, std::chrono::seconds wrong_by) {
    const std::int64_t seconds = wrong_by.count();
    const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    const bool written = descriptor >= 0 && pwrite(descriptor, &seconds, sizeof(seconds), 0) == sizeof(seconds);
    if (descriptor >= 0) close(descriptor);
    if (!written) throw std::system_error(errno, std::generic_category(), file);
}

Means Means::find() {
    Means means;
    means.no_disk = try_mount();
    if (access(CHAOS_CLOCK_SHIM, R_OK) != 0) means.no_clock = "not in a build with sanitizers";
    return means;
}

Arena::Arena(const Options& options, const Means& means)
    : options_(options),
      disks_(means.no_disk.empty()),
      clocks_(means.no_clock.empty()),
      ensemble_(std::make_unique<testenv::ZkEnsemble>(ensemble_options(options, means))) {}

Arena::~Arena() {
    if (!disks_) return;
    // Or the servers' directories could not be removed. What is still open there goes with the servers.
    for (int i = 0; i < size(); ++i) umount2((ensemble_->member(i).directory() + "/txn").c_str(), MNT_DETACH);
}

std::vector<testenv::Gate> Arena::make_gates() const {
    std::vector<testenv::Gate> gates;
    for (int i = 0; i < size(); ++i) {
        gates.emplace_back(ensemble_->member(i).endpoint());
        gates.back().limit_trace(0);
    }
    return gates;
}

int Arena::leader() { return wait_whole(); }

int Arena::follower() {
    const int now = wait_whole();
    do {
        turn_ = (turn_ + 1) % size();
    } while (turn_ == now);
    return turn_;
}

int Arena::wait_whole() { return ensemble_->wait_quorum(std::chrono::seconds(90)); }

void Arena::fill_disk(int member) {
    const std::string file = ensemble_->member(member).directory() + "/txn/full";
    const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) throw std::system_error(errno, std::generic_category(), file);
    const std::vector<char> zeroes(64 * 1024);
    std::size_t size = zeroes.size();
    while (size != 0) {
        const ssize_t written = write(descriptor, zeroes.data(), size);
        if (written <= 0) size /= 2;  // down to the last byte
    }
    close(descriptor);
}

void Arena::free_disk(int member) { unlink((ensemble_->member(member).directory() + "/txn/full").c_str()); }

std::string Arena::clock_of(int member) const { return ensemble_->member(member).directory() + "/clock"; }

}  // namespace zkrecipes::chaos
