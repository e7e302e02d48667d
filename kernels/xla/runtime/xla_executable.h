// Runs a stage program on one device of XLA, which may be a part of a slice. The operations between
// two collectives of a piece that leave the slice are one compiled program; these collectives and
// pipeline transfers run in host memory over the rank's communicators, as on a processor.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_XLA_EXECUTABLE_H_
#define TROUPE_KERNELS_XLA_RUNTIME_XLA_EXECUTABLE_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/backend/immediate_executable.h"
#include "kernels/xla/pjrt/client.h"
#include "kernels/xla/runtime/program_cache.h"
#include "kernels/xla/runtime/segment.h"
#include "kernels/xla/runtime/value_storage.h"

namespace troupe::kernels::xla {

struct ExecutableOptions {
  ProgramCache* programs = nullptr;
  StagePrograms stage;  // those of the slice's ranks; this rank's is the executable's
  std::shared_ptr<const std::vector<model::Program>> owned;  // those of the other ranks
  int partition = 0;                                         // this rank's among them
  std::vector<int> devices;  // by partition: indices of the client's devices
  int threads = 1;           // that compile at once
  // The same program in host memory, for the collectives that leave the slice; null: it has none.
  std::unique_ptr<Executable> host;
  FindCommunicator find_communicator;
};

class XlaExecutable : public ImmediateExecutable {
 public:
  XlaExecutable(const model::Program& program, const model::MemoryPlan& plan,
                ExecutableOptions options);

  // Compiles the pieces that the plan's schedule runs, each as a whole, and those of evaluations,
  // several at a time.
  // Other pieces and parts of a piece are compiled when they are first run. Errors: UNIMPLEMENTED,
  // which names an operation that is not lowered; those of the compiler.
  Status Compile();

  Status Run(int chunk_index, model::Piece piece, int buffer, const RunOptions& options) override;
  Status PrepareRun(int chunk_index, model::Piece piece, const RunOptions& options) override;
  Status RunUpdate() override;
  Status RunInitialize() override;

  void Observe(OperationObserver* observer) override { observer_ = observer; }
  void* Address(model::ValueId, int) override { return nullptr; }
  bool is_host_memory() const override { return false; }
  Status Write(model::ValueId value, int buffer, std::span<const std::byte> bytes) override;
  Status Read(model::ValueId value, int buffer, std::span<std::byte> bytes) override;
  Status Copy(model::ValueId from, int from_buffer, model::ValueId to, int to_buffer) override;
  Status ReadPart(model::ValueId value, int64_t offset_bytes, std::span<std::byte> bytes) override;
  Status Send(model::ValueId value, int buffer, Communicator& link) override;
  Status Receive(model::ValueId value, int buffer, Communicator& link) override;
  const char* CurrentOperation() const override { return current_.load(std::memory_order_relaxed); }

 protected:
  std::span<std::byte> Memory(model::ValueId value, int buffer) override;

 private:
  // The list of operations that a run belongs to: a piece of a chunk, or a list of the rank.
  struct List {
    const StageOps* ops = nullptr;
    int chunk_index = -1;  // -1: of the rank
    model::Piece piece = model::Piece::kUpdate;
  };
  // One step of a run: a compiled program, or an operation in host memory.
  struct Step {
    size_t begin = 0, end = 0;
    bool on_host = false;
    SegmentText text;
    std::shared_ptr<Program> program;  // null: on the host, or it writes nothing
    std::vector<model::ValueId> dead;  // roots that nobody reads after it
  };
  using Steps = std::vector<Step>;
  // List, range and evaluation.
  using Key = std::tuple<const void*, size_t, size_t, bool>;

  int device() const { return options_.devices[options_.partition]; }
  bool RunsOnHost(const model::Op& op) const;
  std::vector<Step> Cut(const List& list, size_t begin, size_t end) const;
  // Writes and compiles the programs of a range; several threads may do so at once.
  StatusOr<Steps> MakeSteps(const List& list, size_t begin, size_t end, bool evaluate) const;
  StatusOr<Steps*> StepsOf(const List& list, size_t begin, size_t end, bool evaluate);
  Status RunSteps(const List& list, int buffer, const RunOptions& options);
  Status RunProgram(const Step& step, int buffer, bool first_microbatch);
  Status RunOnHost(const List& list, size_t index, int buffer, const RunOptions& options);
  Status ReduceOfRank(const model::Op& op);
  void Notify(const List& list, const Step& step, int buffer, const RunOptions& options);

  // The storage of a value's root, and the byte at which the value begins in it.
  ValueStorage& StorageOf(model::ValueId value, int buffer, int64_t* offset_bytes);
  ValueStorage& StorageOf(model::ValueId root, int buffer);
  Status CheckSize(model::ValueId value, size_t bytes) const;

  const model::Program& program_;
  const model::MemoryPlan& plan_;
  const ExecutableOptions options_;
  // ReadPart may be called from another thread: guards the storage.
  std::mutex storage_mutex_;
  std::vector<std::vector<ValueStorage>> storage_;  // [root][buffer]
  std::unique_ptr<Buffer> first_microbatch_[2];     // i32: 0 and 1
  std::map<Key, Steps> steps_;
  int32_t launches_ = 0;  // all ranks of the slice run the same programs in the same order
  std::map<const StageOp*, std::string> names_;
  std::atomic<const char*> current_ = "";
  OperationObserver* observer_ = nullptr;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_XLA_EXECUTABLE_H_
