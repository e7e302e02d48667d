#include "tests/simulation/simulated_planner.h"

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace troupe::simulation {
namespace {

StatusOr<v1::Plan> MakePlan(const v1::JobSpec& spec, const v1::DeviceProfile*) {
  v1::Plan plan;
  v1::MeshDegrees& mesh = *plan.mutable_mesh();
  mesh.set_pipe(static_cast<int32_t>(spec.parallelism().pipeline_parallel_degree()));
  mesh.set_data_replicate(
      static_cast<int32_t>(spec.parallelism().data_parallel_replicate_degree()));
  mesh.set_tensor(static_cast<int32_t>(spec.parallelism().tensor_parallel_degree()));
  mesh.set_data_shard(1);
  mesh.set_context(1);
  mesh.set_expert(1);
  const int ranks = mesh.pipe() * mesh.data_replicate() * mesh.tensor();
  for (int rank = 0; rank < ranks; ++rank) plan.add_ranks()->set_rank(rank);
  plan.set_digest(fmt::format("sim:{}", ranks));
  return plan;
}

StatusOr<v1::Plan> Place(const v1::JobSpec& spec, const v1::Plan& plan,
                         const ClusterView& cluster) {
  std::set<std::pair<std::string, int32_t>> free;
  for (const ClusterDevice& device : cluster.free_devices)
    free.emplace(device.worker, device.device.index());
  if (static_cast<int>(free.size()) < plan.ranks_size()) {
    return FailedPrecondition("{} devices are free, {} are needed", free.size(), plan.ranks_size());
  }
  v1::Plan placed = plan;
  placed.mutable_device()->set_kind("cpu");
  placed.set_threads_per_rank(1);
  std::vector<v1::RankPlacement*> homeless;
  for (v1::RankPlacement& rank : *placed.mutable_ranks()) {
    if (free.erase({rank.worker(), rank.device()}) == 0) homeless.push_back(&rank);
  }
  for (v1::RankPlacement* const rank : homeless) {
    // Another device of the same worker, else the first free one.
    auto device = free.lower_bound({rank->worker(), 0});
    if (device == free.end() || device->first != rank->worker()) device = free.begin();
    rank->set_worker(device->first);
    rank->set_device(device->second);
    free.erase(device);
  }
  return placed;
}

}  // namespace

Planner MakeSimulatedPlanner() {
  Planner planner;
  planner.complete = [](const v1::JobSpec& spec) -> StatusOr<v1::JobSpec> { return spec; };
  planner.make_plan = MakePlan;
  planner.place = Place;
  planner.smaller_layout = [](const v1::JobSpec& spec, int devices) -> std::optional<v1::JobSpec> {
    const v1::ParallelismSpec& axes = spec.parallelism();
    const int64_t others = axes.pipeline_parallel_degree() * axes.tensor_parallel_degree();
    v1::JobSpec smaller = spec;
    int64_t replicas = axes.data_parallel_replicate_degree();
    while (replicas > 1 && replicas * others > devices) replicas /= 2;
    if (replicas * others > devices || replicas == axes.data_parallel_replicate_degree())
      return std::nullopt;
    smaller.mutable_parallelism()->set_data_parallel_replicate_degree(replicas);
    return smaller;
  };
  return planner;
}

}  // namespace troupe::simulation
