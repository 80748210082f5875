#pragma once

#include <memory>
#include <string>
#include <vector>

namespace zkrecipes::test {
class PeerProcess;
}

namespace zkrecipes::bench {

/// A process that is measured, or measures itself. Make it on the main thread.
class Process {
public:
    explicit Process(const std::vector<std::string>& argv);
    ~Process();
    int pid() const;
    /// Runs a command and returns the numbers that it answers. Throws std::runtime_error if the process has ended.
    std::vector<double> ask(const std::vector<std::string>& words);

private:
    std::unique_ptr<test::PeerProcess> process_;
};

/// A process with sessions of Curator, which measures itself (curator/CuratorBench.java).
class Curator : public Process {
public:
    /// Why there is none; empty: it can run.
    static std::string why_not();
    /// Opens so many sessions; session i uses hosts[i modulo their number].
    Curator(int sessions, const std::vector<std::string>& hosts);
};

}  // namespace zkrecipes::bench
