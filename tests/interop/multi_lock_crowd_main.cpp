// multi_lock_crowd [ACQUISITIONS [SEED [GUESTS [OURS [THEIRS]]]]]: sixteen clients lock random sets of twelve paths, in
// any order and mode, and single paths beside, on a server of its own. GUESTS of them, four if nothing is said, are
// Curator's, where there is one. Sets of ours give way after OURS milliseconds (100; 0: never), Curator's multi-locks
// after THEIRS (0: never). Exit code 0: nobody overlapped, everybody was served, nothing was left.
#include <cstdio>
#include <cstdlib>

#include <zkrecipes/testenv/available.hpp>
#include <zkrecipes/testenv/zk_server.hpp>

#include "interop/curator_crowd.hpp"

int main(int argc, char** argv) {
    using namespace zkrecipes::test;
    CrowdOptions options;
    const auto number = [&](int index, std::uint64_t otherwise) {
        return argc > index ? std::strtoull(argv[index], nullptr, 10) : otherwise;
    };
    options.acquisitions = number(1, options.acquisitions);
    options.seed = number(2, options.seed);
    const std::size_t guests = number(3, 4);
    options.give_way_after = std::chrono::milliseconds(guests == 0 ? 0 : number(4, 100));
    const std::chrono::milliseconds theirs(number(5, 0));
    if (options.acquisitions == 0 || guests > options.clients) {
        std::fprintf(stderr, "usage: %s [ACQUISITIONS [SEED [GUESTS [OURS [THEIRS]]]]]\n", argv[0]);
        return 64;
    }
    try {
        const zkrecipes::testenv::ZkServer server;
        std::unique_ptr<PeerProcess> curator;
        if (const auto reason = why_no_peer(PeerLanguage::curator); !reason.empty()) {
            std::printf("without Curator: %s\n", reason.c_str());
        } else if (guests > 0) {
            curator = std::make_unique<PeerProcess>(PeerLanguage::curator);
            options.guests = curator_guests(*curator, server.connect_string(), guests, theirs);
        }
        const auto wanted = options.acquisitions;
        const auto report = run_crowd(server.connect_string(), "/crowd", std::move(options));
        std::printf("%s\n", report.text().c_str());
        return report.went_well(wanted) ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
