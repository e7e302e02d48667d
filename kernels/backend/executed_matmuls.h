// Records the operand types with which a backend computes a program's matmuls. It is filled where
// kernels are chosen, so it shows what runs rather than what the program requests. Not thread-safe.
#ifndef TROUPE_KERNELS_BACKEND_EXECUTED_MATMULS_H_
#define TROUPE_KERNELS_BACKEND_EXECUTED_MATMULS_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "model/program/program.h"

namespace troupe::kernels {

inline bool IsMatmul(model::OpKind kind) {
  using model::OpKind;
  return kind == OpKind::kMatmul || kind == OpKind::kMatmulGradInput ||
         kind == OpKind::kMatmulGradWeight || kind == OpKind::kGroupedMatmul ||
         kind == OpKind::kGroupedMatmulGradInput || kind == OpKind::kGroupedMatmulGradWeight;
}

// `count` matmuls of one kind, with operands of types `a` and `b` that were computed as `used_a`
// and `used_b`.
struct ExecutedMatmul {
  model::OpKind kind;
  model::DType a, b;
  model::DType used_a, used_b;
  int64_t count = 0;
};

class ExecutedMatmuls {
 public:
  // Records that the matmul `op` of `program` computes with operands of types `used_a` and
  // `used_b`. Counts each operation once however often it is prepared: pieces I and W contain the
  // operations of B.
  void Note(const model::Program& program, const model::Op& op, model::DType used_a,
            model::DType used_b) {
    const model::DType a = program.value(op.inputs[0]).dtype, b = program.value(op.inputs[1]).dtype;
    noted_[{op.kind, op.outputs[0], op.inputs[0], op.inputs[1]}] = {op.kind, a,      b,
                                                                    used_a,  used_b, 1};
  }

  // Counts summed over operations, ordered by kind.
  std::vector<ExecutedMatmul> List() const {
    std::map<std::tuple<model::OpKind, model::DType, model::DType, model::DType, model::DType>,
             ExecutedMatmul>
        sums;
    for (const auto& [operation, matmul] : noted_) {
      const auto types = std::tuple(matmul.kind, matmul.a, matmul.b, matmul.used_a, matmul.used_b);
      const auto [sum, is_new] = sums.try_emplace(types, matmul);
      if (!is_new) ++sum->second.count;
    }
    std::vector<ExecutedMatmul> list;
    for (const auto& [types, sum] : sums) list.push_back(sum);
    return list;
  }

 private:
  using Operation = std::tuple<model::OpKind, model::ValueId, model::ValueId, model::ValueId>;
  std::map<Operation, ExecutedMatmul> noted_;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_EXECUTED_MATMULS_H_
