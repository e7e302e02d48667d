// Turns a program and its memory plan into instructions on one arena.
#ifndef TROUPE_KERNELS_CPU_PREPARATION_H_
#define TROUPE_KERNELS_CPU_PREPARATION_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/backend/arena_layout.h"
#include "kernels/backend/backend.h"
#include "kernels/backend/op_arguments.h"
#include "kernels/backend/op_sequence.h"
#include "kernels/backend/rope_tables.h"
#include "kernels/cpu/arena.h"
#include "kernels/cpu/experts/routed_rows.h"
#include "kernels/cpu/instruction.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/update.h"
#include "kernels/cpu/wait.h"
#include "kernels/exchange/row_exchange.h"

namespace troupe::kernels::cpu {

using Instructions = std::vector<std::unique_ptr<Instruction>>;
using MadeInstruction = StatusOr<std::unique_ptr<Instruction>>;

// Prepares one executable: call Measure, then Make any number of times. Must outlive the
// instructions, which use its matmuls and arena.
class Preparation {
 public:
  // The references must outlive this object.
  Preparation(const model::Program& program, const model::MemoryPlan& plan,
              const FindCommunicator& find_communicator, Level level, int threads)
      : program_(program),
        plan_(plan),
        find_communicator_(find_communicator),
        level_(level),
        kernels_(KernelsOf(level)),
        threads_(threads),
        layout_(plan),
        rope_tables_(program) {}

  // Prepares oneDNN's matmuls, measures scratch, maps the arena and fills the tables in it.
  Status Measure();

  // Makes the instructions of `ops` on one buffer. REQUIRES: Measure returned OK.
  StatusOr<Instructions> Make(const std::vector<model::Op>& ops, int buffer);

  // The address of a value. REQUIRES: Measure returned OK.
  char* Address(model::ValueId value, int buffer) const;

  int64_t arena_bytes() const { return arena_->bytes(); }
  // Ops for which oneDNN has only slow code: "matmul x.y: ref:any".
  const std::vector<std::string>& fallbacks() const { return fallbacks_; }
  const ExecutedMatmuls& executed_matmuls() const { return executed_matmuls_; }

 private:
  // An operation for which an instruction is made.
  struct Making {
    const model::Op& op;
    int buffer;
    OpArguments arguments;
    int threads;  // suits the first output
    Overwrites overwrites;

    char* in(size_t i) const { return arguments.in(i); }
    char* out(size_t i) const { return arguments.out(i); }
    int column() const { return arguments.bfloat16() ? 1 : 0; }  // index in the kernel table
  };
  MadeInstruction MakeOne(const model::Op& op, int buffer);
#define TROUPE_CPU_MADE(Kind, name) MadeInstruction Make##Kind(const Making& making);
#include "model/program/op_kinds.def"

  // Measures the working memory that `op` needs with this library and on these threads. The memory
  // plan's number (OpRules::scratch_bytes) is an estimate, made without the library.
  Status MeasureOp(const model::Op& op);
  // Returns 0 for operations that are not attention.
  int64_t AttentionBytes(const model::Op& op) const;
  Status MeasureMatmul(const model::Op& op, const MatmulShape& shape);
  // The matmul of one tile of `rows` rows of a grouped matmul.
  MatmulShape TileOf(const model::Op& op, int64_t rows) const;
  // Records that `matmul` computes `op`.
  void NoteMatmul(const model::Op& op, const Matmul& matmul);
  RoutedRowsArgs RoutedOf(const model::Op& op, int buffer) const;
  // The list to which an asynchronous collective appends its handles for its wait; null for other
  // ops.
  std::shared_ptr<InFlight> InFlightOf(const model::Op& op);
  RowExchange ExchangeOf(const model::Op& op) const;
  bool KeepsInput(const model::Op& op) const;
  // Bytes of an FP8 operand dequantised to bfloat16 in scratch.
  int64_t WidenedBytes(model::ValueId value) const;
  // Small ops use one thread.
  int ThreadsFor(int64_t elements) const;
  // For a kernel that reads its first input and writes its first output.
  int ThreadsFor(const model::Op& op) const;
  int ThreadsFor(const MatmulShape& shape) const;
  // The inputs of an optimizer's operation.
  UpdateInputs UpdateInputsOf(const model::Op& op) const;
  float* Floats(model::ValueId value) const { return reinterpret_cast<float*>(Address(value, 0)); }
  double* Doubles(model::ValueId value) const {
    return reinterpret_cast<double*>(Address(value, 0));
  }
  int64_t Extent(model::ValueId value, int dim) const {
    return program_.value(value).dims[dim].local;
  }
  char* tables() const { return arena_->base() + layout_.bytes(); }
  char* scratch() const { return tables() + rope_tables_.bytes(); }

  const model::Program& program_;
  const model::MemoryPlan& plan_;
  const FindCommunicator& find_communicator_;
  const Level level_;
  const KernelTable& kernels_;
  const int threads_;
  const ArenaLayout layout_;
  const RopeTables rope_tables_;  // stored before scratch

  std::map<MatmulShape, std::unique_ptr<Matmul>> matmuls_;
  std::vector<std::string> fallbacks_;
  ExecutedMatmuls executed_matmuls_;
  std::map<model::ValueId, std::shared_ptr<InFlight>> in_flight_;  // keyed by first output
  int64_t working_bytes_ = 0;  // the largest scratch need of one op
  std::optional<Arena> arena_;
};

}  // namespace troupe::kernels::cpu

#endif  // TROUPE_KERNELS_CPU_PREPARATION_H_
