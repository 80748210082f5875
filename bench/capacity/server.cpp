// The servers that are measured, and the tables.
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "bench/capacity/capacity.hpp"

namespace zkrecipes::bench {
namespace {

/// The model and the number of the processors, memory, kernel.
std::string machine() {
    std::string model = "unknown processor";
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("model name")) {
            model = line.substr(line.find(": ") + 2);
            break;
        }
    }
    utsname kernel{};
    uname(&kernel);
    std::istringstream release(kernel.release);
    std::string major, minor;
    std::getline(std::getline(release, major, '.'), minor, '.');
    const auto gib =
        static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 30);
    char text[256];
    std::snprintf(text, sizeof text, "%ld processors (%s), %.0f GiB of memory, %s %s.%s", sysconf(_SC_NPROCESSORS_ONLN),
                  model.c_str(), gib, kernel.sysname, major.c_str(), minor.c_str());
    return text;
}

}  // namespace

Csv::Csv(bool brief, const std::vector<std::string>& columns) {
    std::printf("# %s%s\n", brief ? "brief: " : "", machine().c_str());
    for (const std::string& column : columns)
        std::printf("%s%s", &column == &columns.front() ? "" : ",", column.c_str());
    std::printf("\n");
}

void Csv::row(const std::vector<std::optional<double>>& values) {
    bool first = true;
    for (const auto& value : values) {
        if (!std::exchange(first, false)) std::printf(",");
        if (value) std::printf(*value >= 1000 ? "%.0f" : "%.3g", *value);
    }
    std::printf("\n");
    std::fflush(stdout);
}

testenv::ServerOptions large_server(const std::string& heap) {
    testenv::ServerOptions options;
    options.java_flags = {"-XX:TieredStopAtLevel=4", "-XX:CICompilerCount=2", "-Xmx" + heap};
    options.max_session_timeout = std::chrono::minutes(10);
    return options;
}

std::optional<double> live_heap(const testenv::ZkServer& server) {
    const std::string command = "jcmd " + std::to_string(server.pid()) + " GC.class_histogram 2>/dev/null";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> answer(popen(command.c_str(), "r"), pclose);
    std::optional<double> bytes;
    char line[1024];
    while (answer && std::fgets(line, sizeof line, answer.get()) != nullptr) {
        std::istringstream words(line);
        std::string word;
        double instances = 0, size = 0;
        if (words >> word >> instances >> size && word == "Total") bytes = size;
    }
    return bytes;
}

}  // namespace zkrecipes::bench
