// Turns the operations of a program into device commands on one arena. The arena holds the values
// at the places of the memory plan, then tables that kernels read, then the working memory of each
// computing stream, which its operations reuse one after another.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_PREPARATION_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_PREPARATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "collective/device_communicator.h"
#include "kernels/backend/arena_layout.h"
#include "kernels/backend/executed_matmuls.h"
#include "kernels/backend/op_arguments.h"
#include "kernels/backend/rope_tables.h"
#include "kernels/cuda/kernels/update.h"
#include "kernels/cuda/runtime/command.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/device_libraries.h"
#include "kernels/cuda/runtime/stalls.h"
#include "kernels/exchange/row_moves.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels::cuda {

// Returns null if the group has one rank.
using FindDeviceCommunicator = std::function<DeviceCommunicator*(const model::CollectiveGroup&)>;

// Errors: INVALID_ARGUMENT if the dtype has no reduction.
StatusOr<ElementType> ElementTypeOf(model::DType dtype);

// Usage: Allocate, then Make any number of times, then Finish.
class Preparation {
 public:
  // The references and libraries must outlive this object.
  Preparation(const model::Program& program, const model::MemoryPlan& plan, Device& device,
              const DeviceLibraries& libraries, const Stalls& stalls,
              FindDeviceCommunicator find_communicator);

  // Measures tables and working memory and allocates the arena. Errors: RESOURCE_EXHAUSTED with the
  // number of bytes that cannot be allocated, UNIMPLEMENTED with the name of an operation that the
  // backend does not support.
  Status Allocate();

  // Makes the commands of `op` on one buffer. `accumulate`: for accumulating operations, whether
  // they add to the existing contents.
  StatusOr<Commands> Make(const model::Op& op, int buffer, bool accumulate);

  // Copies the tables to the device; the copies are complete on return.
  Status Finish();

  char* Address(model::ValueId value, int buffer) const {
    return At(layout_.OffsetOf(value, buffer));
  }
  int64_t arena_bytes() const {
    return layout_.bytes() + tables_bytes_ + working_.bytes + of_communication_.bytes;
  }
  // Operations that run on our own kernels because the library does not support them: "matmul x.y:
  // own kernel".
  const std::vector<std::string>& fallbacks() const { return fallbacks_; }
  const ExecutedMatmuls& executed_matmuls() const { return executed_matmuls_; }
  // The chosen implementations of operations that have several: "attention: own kernels".
  const std::set<std::string>& implementations() const { return implementations_; }

 private:
  // Working memory of the kernels of one stream.
  struct Working {
    int64_t bytes = 0;  // maximum over all operations
    int64_t taken = 0;  // allocated by the current operation

    int64_t Allocate(int64_t count);  // returns the offset of the allocation
  };

  // Allocates `count` elements of working memory for the current operation on the compute stream.
  template <typename T>
  T* Allocate(int64_t count) {
    return reinterpret_cast<T*>(AllocateBytes(count * static_cast<int64_t>(sizeof(T))));
  }
  char* AllocateBytes(int64_t bytes);
  // The same for the communication stream.
  template <typename T>
  T* AllocateForCommunication(int64_t count) {
    return reinterpret_cast<T*>(
        AllocateBytesForCommunication(count * static_cast<int64_t>(sizeof(T))));
  }
  char* AllocateBytesForCommunication(int64_t bytes);
  // The device address of a table of the current operation with these contents.
  template <typename T>
  const T* Table(const std::vector<T>& contents) {
    return reinterpret_cast<const T*>(TableBytes(std::as_bytes(std::span(contents))));
  }
  const char* TableBytes(std::span<const std::byte> contents);

  // An operation for which commands are made.
  struct Making {
    Commands* commands;  // the commands made so far
    const model::Op& op;
    int buffer;
    bool accumulate;
    OpArguments arguments;

    char* in(size_t i) const { return arguments.in(i); }
    char* out(size_t i) const { return arguments.out(i); }
    // Appends kernels on the compute stream. They return OK so that a MakeKind can end with them.
    Status Launch(const KernelLaunch& kernel) const { return Launch(std::span(&kernel, 1)); }
    Status Launch(std::span<const KernelLaunch> kernels) const {
      for (const KernelLaunch& kernel : kernels) commands->emplace_back(Stream::kCompute, kernel);
      return OkStatus();
    }
  };
  Status MakeInto(Commands* commands, const model::Op& op, int buffer, bool accumulate);
#define TROUPE_CUDA_MADE(Kind, name) Status Make##Kind(const Making& making);
#include "model/program/op_kinds.def"

  // The launch that `launch_of` returns for the tensors of an optimizer's operation.
  Status MakeOptimizer(const Making& making,
                       const std::function<KernelLaunch(const UpdateTensors&)>& launch_of);
  void AddCopy(Commands* commands, const void* from, void* to, int64_t bytes) const;
  // A matmul of FP8 operands: by the library, or else on operands dequantised to bfloat16, which is
  // a fall-back.
  Status AddFloat8Matmul(const Making& making, MatmulArgs args, const MatmulShape& shape);
  // A matmul of float32 or bfloat16 operands.
  Status AddMatmulOf(Commands* commands, const model::Op& op, const MatmulArgs& args,
                     const MatmulShape& shape);
  // Whether the matrices have the alignment that a library needs.
  static bool SuitsLibrary(const MatmulArgs& args);
  // Returns null if our own kernel is to be used.
  StatusOr<LibraryMatmul*> LibraryMatmulOf(const MatmulShape& shape);
  // Records that our own kernels compute the current attention; a fall-back if the library that
  // should do so is missing.
  void NoteOwnAttention(const AttentionRows& rows, bool bfloat16);
  // Our own kernels of attention's gradient.
  Status LaunchAttentionGrad(const Making& making, const AttentionGradArgs& args);
  // Records each text once.
  void NoteFallback(const std::string& text);
  // The group of a collective; null if it has one rank.
  DeviceCommunicator* GroupOf(const model::Op& op) const;
  // Reductions whose terms are sent as bfloat16.
  Status AddPackedSum(Commands* commands, const model::Op& op, int buffer,
                      DeviceCommunicator* group);
  // Packs rows, exchanges them, and copies them to their places.
  Status AddRowExchange(const Making& making, const RowMoves& moves);
  // Exchanges rows whose counts only the device knows: in every run the host waits for the counts
  // before it can enqueue the exchange.
  Status AddRoutedExchange(const Making& making, DeviceCommunicator* group);
  // The commands of a collective in a group of one rank: `copies`, or a copy of the first input to
  // the first output.
  Status AddCopiesOfOne(const Making& making, std::span<const CopyCommand> copies);
  Status AddCopyOfOne(const Making& making);
  // Makes `communication`, on its stream, follow the work enqueued on the compute stream. The
  // compute stream waits for its end; if the operation is asynchronous, it does so only at the
  // kWait.
  Status AddCommunication(Commands* commands, const model::Op& op, Commands communication);
  // Counts that the host reads, and the event of their arrival.
  struct HostCounts {
    DeviceMemory memory;
    Event there = 0;
  };
  StatusOr<HostCounts*> HostCountsOf(const model::Op& op, int64_t count);
  int64_t Extent(model::ValueId value, size_t dim) const {
    return program_.value(value).dims[dim].local;
  }

  const model::Program& program_;
  Device& device_;
  const DeviceLibraries libraries_;
  const Stalls& stalls_;
  const FindDeviceCommunicator find_communicator_;
  const ArenaLayout layout_;
  const RopeTables rope_tables_;

  // Address of an offset in the arena. While the arena is being measured, addresses are not backed
  // by memory, but have the same alignment and distances as later.
  char* At(int64_t offset) const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): nothing reads there before the arena is allocated
    return reinterpret_cast<char*>(base_ + static_cast<uintptr_t>(offset));
  }

  DeviceMemory arena_;  // null while it is being measured
  uintptr_t base_ = uintptr_t{1} << 20;
  std::vector<std::byte> tables_;  // contents of the tables
  int64_t tables_bytes_ = 0;
  Working working_, of_communication_;
  const model::Op* op_ = nullptr;  // the current operation
  int tables_of_op_ = 0;
  std::map<std::pair<const model::Op*, int>, int64_t> table_offsets_;
  std::map<MatmulShape, std::unique_ptr<LibraryMatmul>> library_matmuls_;
  // Null: our own kernels are used.
  std::map<LibraryAttentionShape, std::unique_ptr<LibraryAttention>> library_attention_;
  std::map<LibraryAttentionShape, std::unique_ptr<LibraryAttentionGrad>> library_attention_grad_;
  // Collectives in flight, by first output.
  struct InFlight {
    Event begun = 0, over = 0;
    Purpose purpose = Purpose::kControl;
  };
  std::map<model::ValueId, InFlight> in_flight_;
  std::map<const model::Op*, HostCounts> host_counts_;
  std::vector<std::string> fallbacks_;
  ExecutedMatmuls executed_matmuls_;
  std::set<std::string> implementations_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_PREPARATION_H_
