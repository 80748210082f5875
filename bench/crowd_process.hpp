#pragma once

namespace zkrecipes::bench {

/// Name of the thread that looks at the lease of the other lock all the time.
constexpr char kLeaseSampler[] = "lease_sampler";

/// The program as a process full of waiters, so that their memory can be told from that of the benchmark and a crowd
/// that takes too long can be killed. Speaks as curator/CuratorBench.java does; ends with its standard input.
int run_crowd_process();

}  // namespace zkrecipes::bench
