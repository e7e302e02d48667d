#include "plan/layout/replication.h"

#include <cmath>
#include <set>

#include "model/program/storage.h"

namespace troupe {
namespace {

using model::Axis;
using model::Program;
using model::Role;
using model::Value;

bool IsState(const Value& value) {
  return value.view_of == model::kNoValue &&
         (value.role == Role::kParameter || value.role == Role::kComputeCopy ||
          value.role == Role::kGradient || value.role == Role::kOptimizerState);
}

bool IsCut(const Value& value, int axis) {
  return value.placement.axes[axis].kind == model::PlacementKind::kShard;
}

// The state of parameters that the first and the last stage both hold.
int64_t TiedBytes(const Program& program) {
  std::set<model::ValueId> tied;
  for (const model::ParameterEntry& entry : program.parameters) {
    if (!entry.tied) continue;
    tied.insert({entry.value, entry.gradient, entry.compute_copy, entry.gathered, entry.converted});
    tied.insert(entry.optimizer_states.begin(), entry.optimizer_states.end());
  }
  tied.erase(model::kNoValue);
  int64_t bytes = 0;
  for (const model::ValueId id : tied) {
    if (IsState(program.value(id))) bytes += program.value(id).bytes();
  }
  return bytes;
}

}  // namespace

std::vector<v1::AxisReplication> ReplicationOf(const Program& program, std::span<const int> buffers,
                                               int64_t saved_bytes) {
  int64_t state = 0;
  std::vector<int64_t> state_left(model::kNumAxes, 0);
  double saved = 0;
  std::vector<double> saved_left(model::kNumAxes, 0);
  for (const Value& value : program.values) {
    if (IsState(value)) {
      state += value.bytes();
      for (int a = 1; a < model::kNumAxes; ++a) {
        if (!IsCut(value, a)) state_left[static_cast<size_t>(a)] += value.bytes();
      }
    } else if (value.role == Role::kSaved && value.view_of == model::kNoValue) {
      const double bytes =
          static_cast<double>(value.bytes()) * buffers[static_cast<size_t>(value.chunk)];
      saved += bytes;
      for (int a = 1; a < model::kNumAxes; ++a) {
        if (!IsCut(value, a)) saved_left[static_cast<size_t>(a)] += bytes;
      }
    }
  }
  state_left[0] = TiedBytes(program);
  std::vector<v1::AxisReplication> entries;
  for (int a = 0; a < model::kNumAxes; ++a) {
    v1::AxisReplication& entry = entries.emplace_back();
    entry.set_axis(Name(static_cast<Axis>(a)));
    entry.set_degree(program.mesh.degrees.of[a]);
    entry.set_state_bytes(state_left[static_cast<size_t>(a)]);
    entry.set_all_state_bytes(state);
    const double share = saved > 0 ? saved_left[static_cast<size_t>(a)] / saved : 0;
    entry.set_saved_bytes(std::llround(share * static_cast<double>(saved_bytes)));
    entry.set_all_saved_bytes(saved_bytes);
  }
  return entries;
}

}  // namespace troupe
