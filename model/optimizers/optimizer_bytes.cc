#include "model/optimizers/optimizer_bytes.h"

#include "model/program/builder.h"
#include "model/program/op_rules.h"

namespace troupe::model {

namespace {

constexpr int64_t kElements = 1 << 20;

}  // namespace

OptimizerBytes BytesOfOptimizer(const OptimizerConfig& config, bool copies) {
  const OptimizerKind& kind = *config.kind;
  Program program;
  const auto add = [&](DType dtype, int64_t elements = kElements) {
    return AppendValue(program, "", Role::kParameter, 0,
                       {dtype, {{"rows", elements, elements}}, {}, {}});
  };
  ParameterEntry entry;
  entry.value = entry.compute_copy = add(DType::kFloat32);
  entry.reduced_gradient = add(DType::kFloat32);
  if (copies) entry.compute_copy = add(DType::kBFloat16);
  OptimizerBytes bytes;
  for (size_t s = 0; s < kind.states(config).size(); ++s) {
    entry.optimizer_states.push_back(add(DType::kFloat32));
    bytes.state += static_cast<double>(SizeOf(DType::kFloat32));
  }
  Op op = {.kind = kind.op, .attributes = kind.attributes(config)};
  op.inputs.assign(kUpdateScalars, add(DType::kFloat32, 0));  // they do not count
  AppendOperands(entry, &op);
  bytes.moved = static_cast<double>(BytesMoved(op, program)) / static_cast<double>(kElements);
  return bytes;
}

}  // namespace troupe::model
