// One operation of the reference backend. Every value is an array of float64, whatever its dtype,
// so that results are mathematically exact up to float64 rounding and finite differences are
// meaningful. The code favours readability over speed.
//
// Each file of this folder implements the kinds of model/program/op.h named in it; the letters of
// the shapes are those of op.h.
#ifndef TROUPE_KERNELS_REFERENCE_OPERATION_H_
#define TROUPE_KERNELS_REFERENCE_OPERATION_H_

#include <functional>
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
  const std::function<double*(model::ValueId)>& address;  // address of any value, for the optimizer

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

void Embedding(const Operation& operation);
void EmbeddingGrad(const Operation& operation);
void RmsNorm(const Operation& operation);
void AddRmsNorm(const Operation& operation);
void RmsNormGrad(const Operation& operation);
void Add(const Operation& operation);
void Matmul(const Operation& operation);
void MatmulGradInput(const Operation& operation);
void MatmulGradWeight(const Operation& operation);
void Rope(const Operation& operation);
void Dropout(const Operation& operation);
void Attention(const Operation& operation);
void AttentionGrad(const Operation& operation);
void SplitHeads(const Operation& operation);
void JoinHeads(const Operation& operation);
void AttentionPart(const Operation& operation);
void AttentionPartGrad(const Operation& operation);
Status Shift(const Operation& operation);
Status Relayout(const Operation& operation);
void SwiGlu(const Operation& operation);
void SwiGluGrad(const Operation& operation);
void SoftmaxStats(const Operation& operation);
void SoftmaxRescale(const Operation& operation);
void SoftmaxRescaleGrad(const Operation& operation);
void SoftmaxStatsGrad(const Operation& operation);
void SoftmaxStatsAndGrad(const Operation& operation);
void CrossEntropy(const Operation& operation);
void CrossEntropyGrad(const Operation& operation);
void Copy(const Operation& operation);  // copy and cast
Status AllReduce(const Operation& operation);
Status ReduceScatter(const Operation& operation);
Status AllGather(const Operation& operation);
Status ExchangeHeads(const Operation& operation);
void Accumulate(const Operation& operation);
void RouterLogits(const Operation& operation);
void RouterLogitsGradInput(const Operation& operation);
void RouterLogitsGradWeight(const Operation& operation);
void RouterTopK(const Operation& operation);
void RouterTopKGrad(const Operation& operation);
void RouterLoss(const Operation& operation);
void RouterLossGrad(const Operation& operation);
void RouterBias(const Operation& operation);
void Quantize(const Operation& operation);
void AmaxHistory(const Operation& operation);
void RouterLoad(const Operation& operation);
void RouterSlots(const Operation& operation);
void Permute(const Operation& operation);
void PermuteGrad(const Operation& operation);
void GroupedMatmul(const Operation& operation);
void GroupedMatmulGradInput(const Operation& operation);
void GroupedMatmulGradWeight(const Operation& operation);
void Combine(const Operation& operation);
void CombineGrad(const Operation& operation);
Status AllToAll(const Operation& operation);
Status GatherRouted(const Operation& operation);
Status ScatterRouted(const Operation& operation);
void ControlTotals(const Operation& operation);
void ControlRouted(const Operation& operation);
void SumOfSquares(const Operation& operation);
Status ControlReduce(const Operation& operation);
void ControlHalt(const Operation& operation);
void AdamW(const Operation& operation);

}  // namespace troupe::kernels::reference

#endif  // TROUPE_KERNELS_REFERENCE_OPERATION_H_
