#include "sim/delay_workload.hpp"
#include "sim/limits_workload.hpp"
#include "sim/misuse_workload.hpp"
#include "sim/mutex_workload.hpp"
#include "sim/nodes_workload.hpp"
#include "sim/recipes_workload.hpp"
#include "sim/sim_world.hpp"
#include "sim/terms_workload.hpp"
#include "sim/values_workload.hpp"

namespace zkrecipes::sim {
namespace {

Workload* make_workload(SimWorld& world, const Plan& plan, RunResult& result) {
    if (plan.workload == "mutex" || plan.workload == "lease" || plan.workload == "local")
        return new MutexWorkload(world, plan, result);
    if (plan.workload == "limits") return new LimitsWorkload(world, plan, result);
    if (plan.workload == "values") return new ValuesWorkload(world, plan, result);
    if (plan.workload == "nodes") return new NodesWorkload(world, plan, result);
    if (plan.workload == "delay") return new DelayWorkload(world, plan, result);
    if (plan.workload == "misuse") return new MisuseWorkload(world, plan, result);
    if (plan.workload == "terms") return new TermsWorkload(world, plan, result);
    return new RecipesWorkload(world, plan, result);
}

}  // namespace

const std::vector<std::string>& workload_names() {
    static const std::vector<std::string> names{"mutex", "lease",  "read_write", "semaphore", "multi",     "election",
                                                "mixed", "values", "nodes",      "delay",     "strangers", "numbers",
                                                "kazoo", "misuse", "terms",      "local",     "limits",    "keeper"};
    return names;
}

RunResult run_plan(const Plan& plan, bool keep_trace) {
    RunResult result;
    auto* const world = new SimWorld(plan.seed, keep_trace);
    Workload* const workload = make_workload(*world, plan, result);
    workload->run();
    result.hash = world->hash();
    result.events = world->events();
    result.simulated = world->now();
    result.trace.assign(world->trace().begin(), world->trace().end());
    if (!result.stuck) {  // otherwise fibers still refer to them
        delete workload;
        delete world;
    }
    return result;
}

}  // namespace zkrecipes::sim
