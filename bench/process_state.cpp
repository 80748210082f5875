#include "bench/process_state.hpp"

#include <ctime>
#include <fstream>
#include <sstream>

namespace zkrecipes::bench {

int kib_of(int pid, const std::string& what) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(what + ":")) return std::stoi(line.substr(what.size() + 1));
    }
    return 0;
}

std::int64_t processor_milliseconds(int pid) {
    clockid_t clock{};
    timespec time{};
    clock_getcpuclockid(pid, &clock);
    clock_gettime(clock, &time);
    return std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

std::int64_t mntr(const testenv::ZkServer& server, const std::set<std::string>& names) {
    std::istringstream lines(server.four_letter("mntr", std::chrono::seconds(60)));
    std::int64_t sum = 0;
    for (std::string line; std::getline(lines, line);) {
        const auto tab = line.find('\t');
        if (names.count(line.substr(0, tab)) != 0) sum += std::stoll(line.substr(tab + 1));
    }
    return sum;
}

}  // namespace zkrecipes::bench
