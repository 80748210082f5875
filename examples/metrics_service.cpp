// A service that Prometheus watches. It works on jobs, each under its own lock, and serves the metrics of its session.
//
//     metrics_service HOSTS ADDRESS SESSION_TIMEOUT_MS JOB:WORK_MS:PATIENCE_MS...
//
// Each JOB:WORK_MS:PATIENCE_MS is one thread, which does the job again and again: it waits for the lock for at most
// PATIENCE_MS, and holds it for WORK_MS. http://ADDRESS/metrics answers Prometheus. TERM ends the service.
#include <prometheus/exposer.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <zkrecipes/error.hpp>
#include <zkrecipes/exclusive_mutex.hpp>
#include <zkrecipes/prometheus.hpp>
#include <zkrecipes/session.hpp>

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct Job {
    std::string name;
    milliseconds work;
    milliseconds patience;
};

Job job_of(const std::string& text) {
    const auto first = text.find(':');
    const auto second = text.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) {
        throw std::invalid_argument("not JOB:WORK_MS:PATIENCE_MS: " + text);
    }
    return {text.substr(0, first), milliseconds(std::atoll(text.c_str() + first + 1)),
            milliseconds(std::atoll(text.c_str() + second + 1))};
}

zkrecipes::SessionOptions session_options(const std::string& hosts, milliseconds timeout) {
    // [name]
    zkrecipes::SessionOptions options;
    options.hosts = hosts;
    options.timeout = timeout;
    // The label `name` of the metrics: "/jobs/import" and "/jobs/import/42" are "import". Return only few names.
    options.name_of_path = [](const std::string& path) { return path.substr(6, path.find('/', 6) - 6); };
    // [/name]
    return options;
}

/// In place of the real work. Ends early if the lock is lost.
void work(const zkrecipes::Grant& grant, milliseconds time, const std::stop_token& stop) {
    const auto end = steady_clock::now() + time;
    while (grant.held() && !stop.stop_requested() && steady_clock::now() < end) std::this_thread::sleep_for(1ms);
}

void do_again_and_again(zkrecipes::Session& session, const Job& job, const std::stop_token& stop) {
    zkrecipes::ExclusiveMutex mutex(session, "/jobs/" + job.name);
    while (!stop.stop_requested()) {
        try {
            const zkrecipes::Grant grant = mutex.try_acquire_for(job.patience, stop);
            if (grant) work(grant, job.work, stop);
        } catch (const zkrecipes::Error& error) {
            // The metrics count it. The session goes on trying to reach a server.
            std::fprintf(stderr, "%s\n", error.what());
            if (error.errc() == zkrecipes::Errc::closed) return;
            std::this_thread::sleep_for(100ms);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) {
        std::fprintf(stderr, "usage: %s HOSTS ADDRESS SESSION_TIMEOUT_MS JOB:WORK_MS:PATIENCE_MS...\n", argv[0]);
        return 64;
    }
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // in every thread: main() waits for them
    try {
        std::vector<Job> jobs;
        for (int i = 4; i < argc; ++i) jobs.push_back(job_of(argv[i]));
        // [metrics]
        zkrecipes::Session session(session_options(argv[1], milliseconds(std::atoi(argv[3]))));
        const auto metrics = std::make_shared<zkrecipes::PrometheusCollector>();
        metrics->add("main", session);
        prometheus::Exposer exposer(argv[2]);  // from here on, GET /metrics is answered, by a thread of the exposer
        exposer.RegisterCollectable(metrics);
        // [/metrics]
        std::vector<std::jthread> threads;
        for (const Job& job : jobs) {
            threads.emplace_back(
                [&session, job](const std::stop_token& stop) { do_again_and_again(session, job, stop); });
        }
        std::printf("%s serves\n", argv[2]);
        std::fflush(stdout);
        int signal = 0;
        sigwait(&ends, &signal);
        threads.clear();  // asks each to stop, and waits for it
        std::puts("all jobs have ended");
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
