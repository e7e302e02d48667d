// Fills a kernel's arguments (addresses, extents, attributes) from an operation of a program.
// Arguments that a backend provides itself (scratch, tables) stay null.
#ifndef TROUPE_KERNELS_BACKEND_OP_ARGUMENTS_H_
#define TROUPE_KERNELS_BACKEND_OP_ARGUMENTS_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "kernels/backend/arguments.h"
#include "model/program/op.h"
#include "model/program/program.h"

namespace troupe::kernels {

// The arguments of one operation. Keeps references to its inputs. REQUIRES: each function is called
// only for operations of its kind.
class OpArguments {
 public:
  using AddressOf = std::function<char*(model::ValueId)>;

  OpArguments(const model::Program& program, const model::Op& op, AddressOf address)
      : program_(program), op_(op), address_(std::move(address)) {}

  // The address of input or output i.
  char* in(size_t i) const { return address_(op_.inputs[i]); }
  char* out(size_t i) const { return address_(op_.outputs[i]); }
  // Whether the compute dtype is bfloat16 rather than float32.
  bool bfloat16() const;
  // Number of elements of the first output; 0 if there is none.
  int64_t elements() const;

  // The arguments of each kind that a backend runs as one kernel. RmsNorm also fills those of
  // kAddRmsNorm, SplitHeads of kJoinHeads, SoftmaxRescale of kSoftmaxRescaleGrad, and Combine of
  // kPermuteGrad.
#define TROUPE_CPU_TYPED(Kind, name) Kind##Args Kind() const;
#define TROUPE_CPU_PLAIN(Kind, name) Kind##Args Kind() const;
#define TROUPE_CPU_SERIAL(Kind, name) Kind##Args Kind() const;
#include "model/program/op_kinds.def"

  RmsNormGradArgs RmsNormGrad() const;
  CastArgs Cast() const;
  RopeArgs Rope() const;
  AttentionArgs Attention() const;
  AttentionGradArgs AttentionGrad() const;
  AttentionArgs AttentionPart() const;
  AttentionGradArgs AttentionPartGrad() const;
  MatmulArgs Matmul() const;  // for kMatmul…, kGroupedMatmul… and their gradients
  QuantizeArgs Quantize() const;
  std::vector<AmaxHistoryEntry> AmaxHistories() const;  // for kAmaxHistory
  // Dequantises FP8 operand `index` (0 or 1) of a matmul, in the form that the bfloat16 matmul
  // takes.
  DequantizeArgs Operand(size_t index) const;
  CopyRoutedRowsArgs CopyRoutedRows() const;

 private:
  float* in_floats(size_t i) const { return reinterpret_cast<float*>(in(i)); }
  float* out_floats(size_t i) const { return reinterpret_cast<float*>(out(i)); }
  int32_t* in_ints(size_t i) const { return reinterpret_cast<int32_t*>(in(i)); }
  int32_t* out_ints(size_t i) const { return reinterpret_cast<int32_t*>(out(i)); }
  double* in_doubles(size_t i) const { return reinterpret_cast<double*>(in(i)); }
  double* out_doubles(size_t i) const { return reinterpret_cast<double*>(out(i)); }
  // Extent `dim` of input or output i.
  int64_t in_extent(size_t i, size_t dim) const { return Extent(op_.inputs[i], dim); }
  int64_t out_extent(size_t i, size_t dim) const { return Extent(op_.outputs[i], dim); }
  int64_t Extent(model::ValueId value, size_t dim) const {
    return program_.value(value).dims[dim].local;
  }
  int64_t vocab_offset() const {
    return std::get<model::VocabAttributes>(op_.attributes).vocab_offset;
  }
  const model::RouterAttributes& router() const {
    return std::get<model::RouterAttributes>(op_.attributes);
  }
  // Element size of the compute dtype, which is the dtype of the op's first input.
  int64_t element_bytes() const { return model::SizeOf(program_.value(op_.inputs[0]).dtype); }
  AttentionRows RowsOfParts(int64_t rows) const;

  const model::Program& program_;
  const model::Op& op_;
  const AddressOf address_;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_OP_ARGUMENTS_H_
