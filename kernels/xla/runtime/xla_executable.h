// Runs a stage program on one device of XLA, which may be a part of a slice. The operations between
// two collectives that leave the slice are one compiled program; these collectives and pipeline
// transfers run in host memory over the rank's communicators, as on a processor.
//
// Within the parts of a step, the pieces of a group (joined_pieces.h) run together, when its last
// one is called. A call that reads a value, or writes one that a waiting piece uses, runs the
// waiting pieces first, each alone.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_XLA_EXECUTABLE_H_
#define TROUPE_KERNELS_XLA_RUNTIME_XLA_EXECUTABLE_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/backend/immediate_executable.h"
#include "kernels/xla/pjrt/client.h"
#include "kernels/xla/runtime/joined_pieces.h"
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
  StepUse use;
  int threads = 1;  // that compile at once
  // The same program in host memory, for the collectives that leave the slice; null: it has none.
  std::unique_ptr<Executable> host;
  FindCommunicator find_communicator;
};

// One thread at a time may use it; ReadPart and CurrentOperation may be called from any thread.
// Errors of a run name its operation: those of the plugin and of collectives, and
// RESOURCE_EXHAUSTED if host memory for a value cannot be allocated. No value can be relied on
// after an error.
class XlaExecutable : public ImmediateExecutable {
 public:
  // `program` and `plan` must outlive this object.
  XlaExecutable(const model::Program& program, const model::MemoryPlan& plan,
                ExecutableOptions options);

  // Compiles the groups of pieces that the plan's schedule runs, and the pieces of evaluations
  // if there are any, several at a time. A piece alone and parts of a piece are compiled when they
  // are first run. Errors: UNIMPLEMENTED, which names an operation that is not lowered; those of
  // the compiler.
  Status Compile();

  Status BeginPart(StepPart part) override;
  Status EndPart() override;
  Status Run(int chunk_index, model::Piece piece, int buffer, const RunOptions& options) override;
  Status PrepareRun(int chunk_index, model::Piece piece, const RunOptions& options) override;
  Status RunUpdate() override;
  Status RunInitialize() override;

  Status Finish() override { return RunWaiting(); }

  void Observe(OperationObserver* observer) override { observer_ = observer; }
  bool keeps_gradients() const override;
  bool can_inspect_operations() const override { return false; }
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
  StatusOr<std::span<std::byte>> Memory(model::ValueId value, int buffer) override;

 private:
  // A call for a piece.
  struct PieceRun {
    StepPiece piece;
    int buffer = 0;
    RunOptions options;
  };
  // The list of operations that a run belongs to: those of a group, of a piece, or of the
  // initialisation.
  struct List {
    const StageOps* ops = nullptr;
    const ValueUse* values = nullptr;
    std::vector<size_t> begins = {0};  // the first operation of each piece in `ops`
  };
  // One step of a run: a compiled program, or an operation in host memory.
  struct Step {
    size_t begin = 0, end = 0;
    bool on_host = false;
    SegmentText text;
    std::shared_ptr<Program> program;  // null: on the host, or it writes nothing
    std::set<model::ValueId> used;     // roots
    std::vector<model::ValueId> dead;  // roots that nobody reads after it
  };
  using Steps = std::vector<Step>;
  // Where a kWait is: a piece, and the index in it.
  struct Wait {
    StepPiece piece;
    size_t index = 0;
  };
  // A collective in host memory that is in flight. Storage is whole roots, so it ends before the
  // next step that uses one of its roots, even if that step uses another part of the root.
  struct InFlight {
    const model::Op* op = nullptr;
    const std::set<model::ValueId>* roots = nullptr;  // its inputs and outputs are in them
    PieceRun run;                                     // its call, but with the piece of its kWait
    size_t wait_index = 0;
  };
  // List, range and evaluation.
  using Key = std::tuple<const void*, size_t, size_t, bool>;

  int device() const { return options_.devices[options_.partition]; }
  bool RunsOnHost(const model::Op& op) const;
  void FindWaits();
  std::vector<Step> Cut(const List& list, size_t begin, size_t end) const;
  List Alone(const StepPiece& piece, bool evaluate) const;
  static List Joined(const PieceGroup& group) { return {&group.ops, &group.values, group.begins}; }
  List Initialization() const { return {&options_.stage.initialize(), &groups_.alone()}; }
  // Writes and compiles the programs of a range; several threads may do so at once.
  StatusOr<Steps> MakeSteps(const List& list, size_t begin, size_t end, bool evaluate) const;
  StatusOr<Steps*> StepsOf(const List& list, size_t begin, size_t end, bool evaluate);
  // Runs a piece now, or makes it wait for the others of its group.
  Status RunOrWait(const PieceRun& run);
  Status RunWaiting();
  bool WaitingPieceUses(model::ValueId root) const;
  Status RunAlone(const PieceRun& run);
  // `runs` has the calls for the list's pieces; of one piece, it may be a part.
  Status RunSteps(const List& list, std::span<const PieceRun> runs);
  Status RunProgram(const Step& step, int buffer, bool first_microbatch);
  // Runs `op`, which is the step's and operation `index` of a call, in host memory.
  Status RunOnHost(const Step& step, const model::Op& op, size_t index, const PieceRun& run);
  Status RunOneOnHost(const PieceRun& run, size_t index);
  // The kWait in `piece` of a collective that is only begun; none if it is in another piece.
  std::optional<Wait> WaitOf(const model::Op& begun, const StepPiece& piece) const;
  // Completes the collectives in flight that use one of the roots.
  Status WaitFor(const std::set<model::ValueId>& roots);
  // The host has written the outputs of `op`.
  void NoteWrittenOnHost(const model::Op& op, int buffer);
  Status ReduceOfRank(const model::Op& op);
  void Notify(const StageOp& op, const PieceRun& run);

  // The storage of a value's root, and the byte at which the value begins in it.
  ValueStorage& StorageOf(model::ValueId value, int buffer, int64_t* offset_bytes);
  ValueStorage& StorageOf(model::ValueId root, int buffer);
  Status CheckSize(model::ValueId value, size_t bytes) const;

  const model::Program& program_;
  const model::MemoryPlan& plan_;
  const ExecutableOptions options_;
  const StepGroups groups_;
  bool in_part_ = false;
  // The first pieces of a group, which wait for the others; null: none.
  const PieceGroup* waiting_group_ = nullptr;
  std::vector<PieceRun> waiting_;
  // The roots that a piece uses, by its operations.
  std::map<const StageOps*, std::set<model::ValueId>> roots_of_;
  std::map<const model::Op*, Wait> waits_;  // by asynchronous collective
  std::vector<InFlight> in_flight_;
  // ReadPart may be called from another thread: guards the storage.
  std::mutex storage_mutex_;
  std::vector<std::vector<ValueStorage>> storage_;  // [root][buffer]
  std::unique_ptr<Buffer> first_microbatch_[2];     // i32: 0 and 1
  std::map<Key, Steps> steps_;
  int32_t launches_ = 0;  // all ranks of the slice run the same programs in the same order
  std::map<const model::Op*, std::string> names_;  // by StageOp::any
  std::atomic<const char*> current_ = "";
  OperationObserver* observer_ = nullptr;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_XLA_EXECUTABLE_H_
