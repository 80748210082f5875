#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <csignal>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>
#include <zkrecipes/testenv/error.hpp>

#include "child_process.hpp"
#include "java.hpp"
#include "wire.hpp"

// A JVM starts in about half of the time if an archive contains the parsed and verified classes. A server that runs
// once for this purpose writes the archive. A JVM ignores an archive that does not fit.

namespace zkrecipes::testenv::internal {

namespace {

namespace fs = std::filesystem;

std::string cache_directory() {
    const char* chosen = std::getenv("XDG_CACHE_HOME");
    const char* home = std::getenv("HOME");
    if (chosen != nullptr && *chosen == '/') {
        return std::string(chosen) + "/zkrecipes";
    }
    if (home != nullptr && *home == '/') {
        return std::string(home) + "/.cache/zkrecipes";
    }
    return "/tmp/zkrecipes-cache-" + std::to_string(::geteuid());
}

std::string identity(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        return path + "|absent";
    }
    return path + "|" + std::to_string(info.st_size) + "|" + std::to_string(info.st_mtim.tv_sec) + "." +
           std::to_string(info.st_mtim.tv_nsec);
}

// FNV-1a: the name must be the same in every build, which std::hash does not guarantee.
std::string hashed(const std::string& text) {
    std::uint64_t hash = 14695981039346656037ULL;
    for (const unsigned char byte : text) {
        hash = (hash ^ byte) * 1099511628211ULL;
    }
    char name[17];
    std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(hash));
    return name;
}

// The JVM is identified by its library: asking it for its version would take as long as the archive saves.
std::string archive_key(const Java& java) {
    std::error_code error;
    const fs::path program = fs::canonical(java.program, error);
    std::string key = identity(program) + identity(program.parent_path().parent_path() / "lib/server/libjvm.so") +
                      identity(program.parent_path().parent_path() / "release");
    for (const auto& jar : java.jars) {
        key += identity(jar);
    }
    for (const auto& flag : quick_start_flags()) {
        key += flag;
    }
    return hashed(key);
}

// One session with one create and one list, so that the classes of the request path are in the archive too.
void exercise(const Endpoint& endpoint, Clock::time_point deadline) {
    const UniqueFd fd = connect_before(endpoint, deadline);
    const std::string acl = wire::Writer().int32(1).int32(31).text("world").text("anyone").bytes();
    const std::string bytes =
        wire::connect_request({0, 10'000, 0, std::string(16, '\0')}) +
        wire::request(1, Opcode::create, wire::Writer().text("/a").text("").raw(acl).int32(3).bytes()) +
        wire::request(2, Opcode::get_children2, wire::Writer().text("/").byte(1).bytes()) +
        wire::request(3, Opcode::close_session);
    if (!fd || !write_all(fd.get(), bytes.data(), bytes.size(), deadline)) {
        return;
    }
    char byte = 0;
    while (read_all(fd.get(), &byte, 1, deadline)) {
    }
}

bool build_archive(const Java& java, const std::string& archive) {
    AddressClaim claim{""};
    const Endpoint endpoint{claim.address(), 2181};
    const std::string directory = Keeper::instance().directory() + "/class-data";
    fs::create_directories(directory + "/data");
    std::ofstream(directory + "/data/myid") << "1\n";
    // A quorum of one: loads what a standalone server needs and most of what a member of an ensemble does.
    std::ofstream(directory + "/zoo.cfg")
        << "dataDir=" << directory << "/data\nclientPort=2181\nclientPortAddress=" << endpoint.address
        << "\ntickTime=100\ninitLimit=20\nsyncLimit=10\n"
        << "admin.enableServer=false\n4lw.commands.whitelist=*\n"
        << "standaloneEnabled=false\nserver.1=" << endpoint.address << ":2888:3888\n";
    std::vector<std::string> command{java.program};
    for (auto& flag : quick_start_flags()) {
        command.push_back(std::move(flag));
    }
    const std::string unfinished = archive + "." + std::to_string(::getpid());
    command.insert(command.end(), {"-XX:ArchiveClassesAtExit=" + unfinished, "-cp", java.class_path,
                                   "org.apache.zookeeper.server.quorum.QuorumPeerMain", directory + "/zoo.cfg"});
    ChildProcess server({command, {}, directory, directory + "/server.log"});
    const auto deadline = Clock::now() + std::chrono::seconds(30);
    bool served = false;
    while (!served && server.running() && Clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        const auto answer = four_letter_word(endpoint, "srvr", deadline);
        served = answer && answer->find("Mode:") != std::string::npos;
    }
    if (served) {
        exercise(endpoint, deadline);
    }
    server.signal(SIGTERM);
    (void)server.wait_exit(deadline);
    server.kill();
    std::error_code error;
    fs::remove_all(directory, error);
    const bool made = fs::exists(unfinished, error) && fs::file_size(unfinished, error) > 0;
    if (served && made) {
        fs::rename(unfinished, archive, error);
        return !error;
    }
    fs::remove(unfinished, error);
    return false;
}

std::string find_or_build(const Java& java) {
    const char* wish = std::getenv("ZKRECIPES_TESTENV_CLASS_DATA");
    if (wish != nullptr && std::string(wish) == "off") {
        return "";
    }
    const std::string folder = cache_directory();
    std::error_code error;
    fs::create_directories(folder, error);
    std::string archive = folder + "/zookeeper-" + archive_key(java) + ".jsa";
    if (fs::exists(archive, error)) {
        return archive;
    }
    // A failed attempt is not repeated: its lock file stays.
    UniqueFd lock(::open((archive + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock || ::flock(lock.get(), LOCK_EX) != 0) {
        return "";
    }
    if (fs::exists(archive, error)) {
        return archive;
    }
    char attempts = 0;
    if (::pread(lock.get(), &attempts, 1, 0) == 1 && attempts >= 3) {
        return "";
    }
    ++attempts;
    (void)!::pwrite(lock.get(), &attempts, 1, 0);
    return build_archive(java, archive) ? archive : "";
}

}  // namespace

std::string class_data_archive(const Java& java) {
    static std::mutex mutex;
    static std::string known_for;
    static std::string archive;
    const std::lock_guard guard(mutex);
    if (known_for != java.program + "\n" + java.class_path) {
        known_for = java.program + "\n" + java.class_path;
        try {
            archive = find_or_build(java);
        } catch (const std::exception&) {
            archive = "";  // the archive only saves time
        }
    }
    return archive;
}

}  // namespace zkrecipes::testenv::internal
