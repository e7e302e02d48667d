#include "model/program/op.h"

namespace troupe::model {

const char* Name(OpKind kind) {
  static constexpr const char* kNames[kNumOpKinds] = {"embedding",
                                                      "embedding_grad",
                                                      "rms_norm",
                                                      "add_rms_norm",
                                                      "rms_norm_grad",
                                                      "add",
                                                      "matmul",
                                                      "matmul_grad_input",
                                                      "matmul_grad_weight",
                                                      "rope",
                                                      "attention",
                                                      "attention_grad",
                                                      "split_heads",
                                                      "join_heads",
                                                      "shift",
                                                      "attention_part",
                                                      "attention_part_grad",
                                                      "swiglu",
                                                      "swiglu_grad",
                                                      "softmax_stats",
                                                      "softmax_rescale",
                                                      "cross_entropy",
                                                      "cross_entropy_grad",
                                                      "softmax_rescale_grad",
                                                      "softmax_stats_grad",
                                                      "copy",
                                                      "all_reduce",
                                                      "reduce_scatter",
                                                      "all_gather",
                                                      "exchange_heads",
                                                      "wait",
                                                      "accumulate",
                                                      "cast",
                                                      "control_totals",
                                                      "sum_of_squares",
                                                      "control_reduce",
                                                      "adamw",
                                                      "router_logits",
                                                      "router_logits_grad_input",
                                                      "router_logits_grad_weight",
                                                      "router_top_k",
                                                      "router_top_k_grad",
                                                      "router_loss",
                                                      "router_loss_grad",
                                                      "permute",
                                                      "permute_grad",
                                                      "all_to_all",
                                                      "grouped_matmul",
                                                      "grouped_matmul_grad_input",
                                                      "grouped_matmul_grad_weight",
                                                      "combine",
                                                      "combine_grad",
                                                      "router_bias",
                                                      "router_load",
                                                      "gather_routed",
                                                      "scatter_routed",
                                                      "router_slots",
                                                      "dropout",
                                                      "relayout"};
  static_assert(static_cast<int>(OpKind::kRelayout) + 1 == kNumOpKinds);
  return kNames[static_cast<int>(kind)];
}

const char* Name(CollectivePurpose purpose) {
  static constexpr const char* kNames[] = {"tensor",  "sequence", "context", "dispatch",
                                           "unshard", "gradient", "pipe",    "control"};
  return kNames[static_cast<int>(purpose)];
}

namespace {

constexpr int kRunAxis = static_cast<int>(Axis::kDataShard);

// What of axis `a` a group spans: ranks, and this rank's place among them.
int SizeOn(const CollectiveGroup& group, int a, int degree) {
  if (a != kRunAxis || group.part == CollectiveGroup::Part::kWhole) return degree;
  return group.part == CollectiveGroup::Part::kWithin ? group.run : degree / group.run;
}
int PlaceOn(const CollectiveGroup& group, int a, int coordinate) {
  if (a != kRunAxis || group.part == CollectiveGroup::Part::kWhole) return coordinate;
  return group.part == CollectiveGroup::Part::kWithin ? coordinate % group.run
                                                      : coordinate / group.run;
}

}  // namespace

int GroupSize(const MeshView& mesh, const CollectiveGroup& group) {
  if (group.kind == CollectiveGroup::Kind::kOwners) return mesh.degrees[Axis::kPipe] > 1 ? 2 : 1;
  int size = 1;
  for (int a = 0; a < kNumAxes; ++a) {
    if (group.kind == CollectiveGroup::Kind::kAll || (group.axes & (1u << a)))
      size *= SizeOn(group, a, mesh.degrees.of[a]);
  }
  return size;
}

int IndexInGroup(const MeshView& mesh, const CollectiveGroup& group) {
  int index = 0;
  for (int a = 0; a < kNumAxes; ++a) {
    if (!(group.axes & (1u << a))) continue;
    index = index * SizeOn(group, a, mesh.degrees.of[a]) +
            PlaceOn(group, a, mesh.coordinates.of[a]);
  }
  return index;
}

CollectiveGroup WithinRun(CollectiveGroup group, int run) {
  group.part = CollectiveGroup::Part::kWithin;
  group.run = run;
  return group;
}

CollectiveGroup AcrossRuns(CollectiveGroup group, int run) {
  group.part = CollectiveGroup::Part::kAcross;
  group.run = run;
  return group;
}

bool AreInOneGroup(const CollectiveGroup& group, const PerAxis& a, const PerAxis& b) {
  for (int axis = 0; axis < kNumAxes; ++axis) {
    const int x = a.of[axis], y = b.of[axis];
    if (!(group.axes & (1u << axis))) {
      if (x != y) return false;
    } else if (axis == kRunAxis && group.part == CollectiveGroup::Part::kWithin) {
      if (x / group.run != y / group.run) return false;
    } else if (axis == kRunAxis && group.part == CollectiveGroup::Part::kAcross) {
      if (x % group.run != y % group.run) return false;
    }
  }
  return true;
}

Range RowCut::Of(int64_t rows, int ranks, int index) const {
  if (owner >= 0) return {index <= owner ? 0 : rows, index < owner ? 0 : rows};
  const Range units = BalancedRange(rows / unit, ranks, index);
  return {units.begin * unit, units.end * unit};
}

std::string ToText(const CollectiveGroup& group) {
  if (group.kind == CollectiveGroup::Kind::kAll) return "all";
  if (group.kind == CollectiveGroup::Kind::kOwners) return "owners";
  // All of them.
  return AxisText(PerAxis{{2, 2, 2, 2, 2, 2}}, group);
}

std::string AxisText(const PerAxis& degrees, const CollectiveGroup& group) {
  std::string text;
  for (int a = 0; a < kNumAxes; ++a) {
    if (!(group.axes & (1u << a)) || degrees.of[a] == 1) continue;
    if (!text.empty()) text += '+';
    text += Name(static_cast<Axis>(a));
    if (a != kRunAxis || group.part == CollectiveGroup::Part::kWhole) continue;
    text += group.part == CollectiveGroup::Part::kWithin ? "_within_" : "_across_";
    text += std::to_string(group.run);
  }
  return text;
}

}  // namespace troupe::model
