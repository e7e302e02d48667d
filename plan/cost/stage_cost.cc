#include "plan/cost/stage_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/build.h"
#include "model/cost.h"
#include "model/parameter_slices.h"
#include "model/program/memory_plan.h"
#include "plan/device/device_traits.h"
#include "plan/job/violation.h"
#include "plan/layout/islands.h"
#include "plan/layout/mesh.h"
#include "plan/layout/replication.h"
#include "plan/validate/stage_inputs.h"

namespace troupe {
namespace {

using model::Axis;
using model::CollectiveGroup;
using model::Piece;
using model::Program;
using model::Role;

struct Sent {
  double bytes = 0;
  double across = 0;  // the part in groups that span islands
};
using Traffic = std::map<std::pair<std::string, std::string>, Sent>;

// "tensor", "data_replicate+expert", "data_shard_within_2"; "pipe" for the owners of a tied
// parameter.
std::string AxisText(const CollectiveGroup& group, const Mesh& mesh) {
  switch (group.kind) {
    case CollectiveGroup::Kind::kAll:
      return "all";
    case CollectiveGroup::Kind::kOwners:
      return Name(Axis::kPipe);
    case CollectiveGroup::Kind::kAxes:
      break;
  }
  return model::AxisText(mesh.degrees(), group);
}

// The bytes that one rank of a stage sends in a step.
class StageTraffic {
 public:
  StageTraffic(const v1::Plan& plan, const Mesh& mesh, int pipe_rank)
      : mesh_(mesh), islands_(plan), pipe_rank_(pipe_rank) {}

  void AddCollectives(const Program& program, const std::vector<model::Op>& ops, double times) {
    for (const model::Op& op : ops) {
      const auto cost = model::CollectiveCostOf(program, op);
      if (!cost) continue;
      const std::string axis = AxisText(cost->group, mesh_);
      Add(axis, Name(cost->purpose), (op.last_microbatch ? 1 : times) * cost->sent_bytes,
          Spans(axis, cost->group));
    }
  }

  // Adds a transfer from each rank to the rank with the same position in stage `other`.
  void AddTransfer(int other, double bytes) {
    const int ranks = mesh_.ranks() / mesh_.degree(Axis::kPipe);
    bool spans = false;
    for (int place = 0; islands_.known() && place < ranks; ++place) {
      const int ends[] = {pipe_rank_ * ranks + place, other * ranks + place};
      spans |= islands_.Spans(ends);
    }
    Add(Name(Axis::kPipe), Name(model::CollectivePurpose::kPipe), bytes, spans);
  }

  const Traffic& traffic() const { return traffic_; }
  bool knows_islands() const { return islands_.known(); }

 private:
  void Add(const std::string& axis, std::string_view purpose, double bytes, bool spans) {
    Sent& sent = traffic_[{axis, std::string(purpose)}];
    sent.bytes += bytes;
    if (spans) sent.across += bytes;
  }

  bool Spans(const std::string& axis, const CollectiveGroup& group) {
    if (!islands_.known()) return false;
    const auto [found, added] = spans_.emplace(axis, false);
    if (added) found->second = islands_.Spans(mesh_, group, pipe_rank_);
    return found->second;
  }

  const Mesh& mesh_;
  const Islands islands_;
  const int pipe_rank_;
  Traffic traffic_;
  std::map<std::string, bool> spans_;  // by the text of a group
};

StageTraffic TrafficOf(const Program& program, const v1::Plan& plan, const Mesh& mesh,
                       int pipe_rank, double microbatches) {
  StageTraffic traffic(plan, mesh, pipe_rank);
  for (size_t index = 0; index < program.chunks.size(); ++index) {
    const int chunk = static_cast<int>(index);
    for (Piece piece : {Piece::kForward, Piece::kBackward}) {
      traffic.AddCollectives(program, program.Ops(chunk, piece), microbatches);
    }
    for (Piece piece : {Piece::kUnshard, Piece::kReduce}) {
      traffic.AddCollectives(program, program.Ops(chunk, piece), 1);
    }
    const auto& interface = program.chunks[index];
    for (model::ValueId sent : {interface.output, interface.input_gradient}) {
      if (sent == model::kNoValue) continue;
      // Neighbouring chunks of one rank exchange data in the rank's memory.
      const int other =
          plan.chunks(interface.chunk + (sent == interface.output ? 1 : -1)).pipe_rank();
      if (other == pipe_rank) continue;
      traffic.AddTransfer(other, microbatches * static_cast<double>(program.value(sent).bytes()));
    }
  }
  traffic.AddCollectives(program, program.update, 1);
  return traffic;
}

int64_t BytesOfRole(const Program& program, Role role) {
  int64_t bytes = 0;
  for (const auto& value : program.values) {
    if (value.role == role && value.view_of == model::kNoValue) bytes += value.bytes();
  }
  return bytes;
}

v1::RankMemory StateMemory(const Program& program) {
  // A sharded float32 master may be stored within the compute copy, of which it is a block.
  int64_t within_copies = 0;
  for (const model::ParameterEntry& entry : program.parameters) {
    const model::Value& master = program.value(entry.value);
    if (master.view_of != model::kNoValue) within_copies += master.bytes();
  }
  v1::RankMemory memory;
  memory.set_parameter_bytes(BytesOfRole(program, Role::kParameter) + within_copies);
  memory.set_compute_copy_bytes(BytesOfRole(program, Role::kComputeCopy) - within_copies);
  memory.set_gradient_bytes(BytesOfRole(program, Role::kGradient));
  memory.set_optimizer_bytes(BytesOfRole(program, Role::kOptimizerState));
  return memory;
}

// The number of ranks of the stage that hold the same slice of `value`.
int64_t HoldersOf(const model::Value& value, const model::PerAxis& degrees) {
  int64_t holders = 1;
  for (int a = 1; a < model::kNumAxes; ++a) {
    const model::AxisPlacement& placement = value.placement.axes[a];
    if (placement.kind != model::PlacementKind::kShard) {
      holders *= degrees.of[a];
    } else if (placement.run > 0 && placement.across != model::PlacementKind::kShard) {
      holders *= degrees.of[a] / placement.run;
    }
  }
  return holders;
}

// Bytes of a snapshot: the copy of the state that a rank writes. The holders of a slice divide the
// writing (checkpoint/write/ownership.h). The two stages of a tied parameter divide it so that
// their loads become equal; each counts half of it here.
int64_t SnapshotBytes(const DecodedJob& job, const Program& program) {
  if (!job.SavesInBackground()) return 0;
  double bytes = 0;
  for (const model::State& state : program.states) {
    if (model::IsFrozen(program, state)) continue;
    const model::Value& value = program.value(state.value);
    const bool tied = state.parameter >= 0 && program.parameters[state.parameter].tied;
    const bool by_all_stages =
        (model::ReplicatedAxes(program, state) & model::GroupOf(Axis::kPipe).axes) != 0;
    int64_t holders = HoldersOf(value, program.mesh.degrees);
    if (by_all_stages) {
      holders *= program.mesh.degrees[Axis::kPipe];
    } else if (tied) {
      holders *= 2;
    }
    bytes += static_cast<double>(value.bytes()) / static_cast<double>(holders);
  }
  return static_cast<int64_t>(std::ceil(bytes));
}

// Sets the memory that a rank needs in addition to its values, and the total.
void AddAround(const DecodedJob& job, const v1::Plan& plan, const Program& program,
               const model::MemoryPlan& memory_plan, v1::RankMemory* memory) {
  memory->set_scratch_bytes(memory_plan.scratch_bytes);
  memory->set_snapshot_bytes(SnapshotBytes(job, program));
  int64_t around = memory->scratch_bytes() + memory->snapshot_bytes();
  if (const DeviceMemoryModel* own = job.DevicesOf(plan).memory) {
    memory->set_host_bytes(memory->snapshot_bytes());
    memory->set_scratch_bytes(own->working_bytes(program));
    memory->set_reserve_bytes(own->reserve_bytes(plan, program));
    around = memory->scratch_bytes() + memory->reserve_bytes();
  }
  memory->set_total_bytes(memory_plan.total_bytes() - memory_plan.scratch_bytes + around);
}

// Among the ranks with the stage and tensor slice of `program`, the coordinates of the one with the
// most parameter elements.
model::PerAxis FullestShard(const Program& program) {
  model::MeshView mesh = program.mesh;
  model::PerAxis fullest = mesh.coordinates;
  int64_t most = -1;
  for (int shard = 0; shard < mesh.degrees[Axis::kDataShard]; ++shard) {
    for (int expert = 0; expert < mesh.degrees[Axis::kExpert]; ++expert) {
      mesh.coordinates[Axis::kDataShard] = shard;
      mesh.coordinates[Axis::kExpert] = expert;
      int64_t elements = 0;
      for (const model::ParameterEntry& entry : program.parameters) {
        const model::Value& whole = program.value(entry.unsharded);
        int64_t rows = whole.dims[0].local;
        for (const auto& [group, cut] : entry.shards)
          rows = cut.Of(rows, GroupSize(mesh, group), IndexInGroup(mesh, group)).size();
        elements += rows * whole.row_elements();
      }
      if (elements <= most) continue;
      most = elements;
      fullest = mesh.coordinates;
    }
  }
  return fullest;
}

// INVALID_ARGUMENT, with the operation and the reason, if the job's devices do not run one.
Status CheckKinds(const Program& program, const DeviceTraits& traits) {
  std::vector<const std::vector<model::Op>*> lists = {&program.initialize};
  for (const auto& pieces : program.ops) {
    for (const std::vector<model::Op>& ops : pieces) lists.push_back(&ops);
  }
  lists.push_back(&program.update);
  for (const std::vector<model::Op>* const ops : lists) {
    for (const model::Op& op : *ops) {
      const char* const why = traits.WhyNot(op.kind);
      if (why == nullptr) continue;
      Violations violations;
      violations.Add("devices", "is {}, which do not run the operation {}: {}", traits.kind,
                     Name(op.kind), why);
      return violations.ToStatus();
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<Program> BuildStage(const DecodedJob& job, const v1::Plan& plan, int pipe_rank,
                             bool runs) {
  const Mesh mesh(plan.mesh());
  const int first = mesh.RankOf({{pipe_rank, 0, 0, 0, 0, 0}});
  TROUPE_ASSIGN_OR_RETURN(model::BuildOptions options, MakeStageBuildOptions(job, plan, first));
  options.runs = runs;
  TROUPE_ASSIGN_OR_RETURN(Program program, model::BuildProgram(options));
  TROUPE_RETURN_IF_ERROR(CheckKinds(program, *job.devices));
  if (!options.whole_matrices) return program;
  const model::PerAxis fullest = FullestShard(program);
  if (mesh.RankOf(fullest) == first) return program;
  options.mesh.coordinates = fullest;
  return model::BuildProgram(options);
}

int64_t StageMemory::bytes(const std::vector<int>& live) const {
  TROUPE_CHECK(live.size() == saved_bytes.size());
  int64_t bytes = fixed_bytes;
  for (size_t chunk = 0; chunk < live.size(); ++chunk) bytes += saved_bytes[chunk] * live[chunk];
  return bytes;
}

StageMemory MemoryOfStage(const DecodedJob& job, const v1::Plan& plan, const Program& program,
                          bool split_backward) {
  const std::vector<int> none(program.chunks.size(), 0);
  model::MemoryPlan memory_plan =
      model::PlanMemory(program, none, split_backward, std::max(1, plan.threads_per_rank()));
  v1::RankMemory memory = StateMemory(program);
  AddAround(job, plan, program, memory_plan, &memory);
  return {memory.total_bytes(), std::move(memory_plan.saved_bytes)};
}

StatusOr<StageCost> CostOfStage(const DecodedJob& job, const v1::Plan& plan, int pipe_rank,
                                const Program& program) {
  const Mesh mesh(plan.mesh());
  TROUPE_ASSIGN_OR_RETURN(const LiveMicrobatches live, CountLiveMicrobatches(plan, pipe_rank));
  const std::vector<int>& buffers = live.of_chunk;
  const int threads = std::max(1, plan.threads_per_rank());
  const model::MemoryPlan memory_plan =
      model::PlanMemory(program, buffers, live.split_backward, threads);

  StageCost cost;
  auto& memory = cost.memory;
  memory = StateMemory(program);
  int64_t saved = 0;
  for (size_t chunk = 0; chunk < buffers.size(); ++chunk) {
    saved += memory_plan.saved_bytes[chunk] * buffers[chunk];
  }
  memory.set_saved_bytes(saved);
  // Scalars and alignment gaps are counted with the temporaries.
  memory.set_temporary_bytes(memory_plan.temporary_bytes + memory_plan.persistent_bytes -
                             memory.parameter_bytes() - memory.compute_copy_bytes() -
                             memory.gradient_bytes() - memory.optimizer_bytes());
  AddAround(job, plan, program, memory_plan, &memory);
  memory.set_threads(threads);
  for (size_t begin = 0; begin < memory_plan.peak_text.size();) {
    const size_t end = memory_plan.peak_text.find('\n', begin);
    memory.add_peak(memory_plan.peak_text.substr(begin, end - begin));
    begin = end == std::string::npos ? end : end + 1;
  }

  const double microbatches = job.batch.microbatches();
  for (size_t chunk = 0; chunk < program.chunks.size(); ++chunk) {
    cost.recomputed_flops +=
        microbatches * model::ModelFlops(program, static_cast<int>(chunk)).recomputed;
  }
  const StageTraffic traffic = TrafficOf(program, plan, mesh, pipe_rank, microbatches);
  for (const auto& [key, sent] : traffic.traffic()) {
    auto& entry = cost.traffic.emplace_back();
    entry.set_axis(key.first);
    entry.set_purpose(key.second);
    entry.set_bytes_per_step(sent.bytes);
    if (traffic.knows_islands()) entry.set_across_islands_bytes_per_step(sent.across);
  }
  cost.replication = ReplicationOf(program, buffers, saved);
  return cost;
}

}  // namespace troupe
