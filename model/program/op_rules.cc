#include "model/program/op_rules.h"

namespace troupe::model {

bool Computes(const Op& op) {
  return RulesOf(op.kind).model_flops != nullptr || op.kind == OpKind::kEmbeddingGrad;
}

int64_t BytesMoved(const Op& op, const Program& program) {
  if (op.kind == OpKind::kCopy || op.kind == OpKind::kWait) return 0;
  int64_t bytes = 0;
  for (const ValueId id : op.inputs) bytes += program.value(id).bytes();
  for (const ValueId id : op.outputs) bytes += program.value(id).bytes();
  if (op.kind == OpKind::kAdamW) {
    for (const ParameterEntry& entry : program.parameters) {
      // Reads and writes the master and both moments; writes the copy.
      bytes += 6 * program.value(entry.value).bytes();
      if (entry.compute_copy != entry.value) bytes += program.value(entry.compute_copy).bytes();
    }
  }
  return bytes;
}

}  // namespace troupe::model
