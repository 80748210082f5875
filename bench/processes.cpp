#include "bench/processes.hpp"

#include "interop/peer.hpp"

namespace zkrecipes::bench {
namespace {

const std::string kJava = ZKRECIPES_INTEROP_JAVA;
const std::string kClassPath = ZKRECIPES_INTEROP_CLASS_PATH;

}  // namespace

std::string Curator::why_not() {
    return kClassPath.empty() ? "there is no Java compiler or no Curator: apt-get install default-jdk-headless "
                                "libcurator-recipes-java"
                              : "";
}

Process::Process(const std::vector<std::string>& argv) : process_(std::make_unique<test::PeerProcess>(argv)) {}

Process::~Process() = default;

int Process::pid() const { return process_->pid(); }

std::vector<double> Process::ask(const std::vector<std::string>& words) {
    std::vector<double> numbers;
    for (const std::string& field : process_->ask("bench", words).fields()) {
        if (!field.empty()) numbers.push_back(std::stod(field));
    }
    return numbers;
}

Curator::Curator(int sessions, const std::vector<std::string>& hosts)
    : Process({kJava, "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx2g", "-Djava.net.preferIPv4Stack=true", "-cp",
               kClassPath, "CuratorBench"}) {
    std::vector<std::string> words{"open", std::to_string(sessions)};
    words.insert(words.end(), hosts.begin(), hosts.end());
    ask(words);
}

}  // namespace zkrecipes::bench
