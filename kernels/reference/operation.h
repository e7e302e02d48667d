// One operation of the reference backend. Every value is an array of float64, whatever its dtype,
// so that results are mathematically exact up to float64 rounding and finite differences are
// meaningful. The code favours readability over speed.
//
// Each file of this folder implements the kinds of model/program/op_kinds.def named in it; the
// letters of the shapes are those of op_kinds.def.
#ifndef TROUPE_KERNELS_REFERENCE_OPERATION_H_
#define TROUPE_KERNELS_REFERENCE_OPERATION_H_

#include <variant>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "model/program/op.h"
#include "model/program/program.h"

namespace troupe::kernels::reference {

struct Operation {
  const model::Program& program;
  const model::Op& op;
  std::vector<double*> inputs;
  std::vector<double*> outputs;
  bool accumulate = false;               // adds to an accumulated output instead of overwriting it
  Communicator* communicator = nullptr;  // for collectives; null: a group of one

  const model::Value& Input(int index) const { return program.value(op.inputs[index]); }
  const model::Value& Output(int index) const { return program.value(op.outputs[index]); }
  // Extent of dimension `dim` of input `index`.
  int64_t Extent(int index, int dim) const { return Input(index).dims[dim].local; }
  // Count i of input `index` (int32 values stored as float64), and the sum of all its counts.
  int64_t Count(int index, int64_t i) const { return static_cast<int64_t>(inputs[index][i]); }
  int64_t SumOfCounts(int index) const {
    int64_t sum = 0;
    for (int64_t i = 0; i < Input(index).elements(); ++i) sum += Count(index, i);
    return sum;
  }
  template <typename T>
  const T& attributes() const {
    return std::get<T>(op.attributes);
  }
};

// Computes one operation of this kind.
#define TROUPE_OP(Kind, name, attributes, cpu, cuda) Status Kind(const Operation& operation);
#include "model/program/op_kinds.def"

}  // namespace troupe::kernels::reference

#endif  // TROUPE_KERNELS_REFERENCE_OPERATION_H_
