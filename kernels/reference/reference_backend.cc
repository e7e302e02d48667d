#include "kernels/reference/reference_backend.h"

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/backend/immediate_executable.h"
#include "kernels/backend/op_sequence.h"
#include "kernels/numerics/value_encoding.h"
#include "kernels/reference/operation.h"

namespace troupe::kernels {
namespace {

Status RunOperation(const reference::Operation& operation) {
  switch (operation.op.kind) {
#define TROUPE_OP(Kind, name, attributes, cpu, cuda) \
  case model::OpKind::k##Kind:                       \
    return reference::Kind(operation);
#include "model/program/op_kinds.def"
  }
  return Internal("operation kind {} is unknown", static_cast<int>(operation.op.kind));
}

class ReferenceExecutable : public ImmediateExecutable {
 public:
  ReferenceExecutable(const model::Program& program, const model::MemoryPlan& plan,
                      FindCommunicator find_communicator)
      : program_(program), find_communicator_(std::move(find_communicator)) {
    storage_.resize(program.values.size());
    for (const model::Value& value : program.values) {
      if (value.view_of != model::kNoValue) continue;
      const model::Location& location = plan.locations[value.id];
      const int copies =
          location.region == model::Region::kSaved ? plan.buffers[location.chunk_index] : 1;
      storage_[value.id].assign(copies, std::vector<double>(value.elements(), 0.0));
    }
  }

  Status Run(int chunk_index, model::Piece piece, int buffer, const RunOptions& options) override {
    return RunOps(program_.Ops(chunk_index, piece), buffer, options);
  }
  Status RunUpdate() override { return RunOps(program_.update, 0, {}); }
  Status RunInitialize() override { return RunOps(program_.initialize, 0, {}); }

  void Observe(OperationObserver* observer) override { observer_ = observer; }

  void* Address(model::ValueId value, int buffer) override { return Numbers(value, buffer); }

  Status Write(model::ValueId value, int buffer, std::span<const std::byte> bytes) override {
    const model::Value& target = program_.value(value);
    if (static_cast<int64_t>(bytes.size()) != target.bytes()) {
      return InvalidArgument("{} bytes written to {}, which has {}", bytes.size(), target.name,
                             target.bytes());
    }
    Decode(target.dtype, bytes.data(), target.elements(), Numbers(value, buffer));
    return OkStatus();
  }

  Status Read(model::ValueId value, int buffer, std::span<std::byte> bytes) override {
    const model::Value& source = program_.value(value);
    if (static_cast<int64_t>(bytes.size()) != source.bytes()) {
      return InvalidArgument("{} bytes read from {}, which has {}", bytes.size(), source.name,
                             source.bytes());
    }
    Encode(source.dtype, Numbers(value, buffer), source.elements(), bytes.data());
    return OkStatus();
  }

  Status Copy(model::ValueId from, int from_buffer, model::ValueId to, int to_buffer) override {
    std::copy_n(Numbers(from, from_buffer), program_.value(from).elements(),
                Numbers(to, to_buffer));
    return OkStatus();
  }

  bool is_host_memory() const override { return false; }
  Status ReadPart(model::ValueId value, int64_t offset_bytes, std::span<std::byte> bytes) override {
    const model::DType dtype = program_.value(value).dtype;
    Encode(dtype, Numbers(value, 0) + offset_bytes / model::SizeOf(dtype),
           static_cast<int64_t>(bytes.size()) / model::SizeOf(dtype), bytes.data());
    return OkStatus();
  }

  const char* CurrentOperation() const override { return current_.load(std::memory_order_relaxed); }

 protected:
  StatusOr<std::span<std::byte>> Memory(model::ValueId value, int buffer) override {
    const auto elements = static_cast<size_t>(program_.value(value).elements());
    return std::as_writable_bytes(std::span(Numbers(value, buffer), elements));
  }

 private:
  double* Numbers(model::ValueId value, int buffer) {
    int64_t offset = 0;
    const model::ValueId root = RootOf(program_, value, &offset);
    std::vector<std::vector<double>>& copies = storage_[root];
    return copies[copies.size() == 1 ? 0 : buffer].data() + offset;
  }

  Status RunOps(const std::vector<model::Op>& ops, int buffer, const RunOptions& options) {
    const size_t end = EndOfRun(options, ops.size());
    for (auto i = static_cast<size_t>(options.first_op); i < end; ++i) {
      const model::Op& op = ops[i];
      if (options.evaluate && op.gradient_in_forward) continue;
      if (op.last_microbatch && !options.last_microbatch) continue;
      current_.store(model::Name(op.kind), std::memory_order_relaxed);
      reference::Operation operation{.program = program_,
                                     .op = op,
                                     .accumulate = Accumulates(OverwritesOf(program_, op), options),
                                     .communicator = CommunicatorOf(op, find_communicator_)};
      for (const model::ValueId id : op.inputs) operation.inputs.push_back(Numbers(id, buffer));
      for (const model::ValueId id : op.outputs) operation.outputs.push_back(Numbers(id, buffer));
      if (Status status = RunOperation(operation); !status.ok()) {
        return Annotate(status, OperationName(program_, op));
      }
      if (observer_ != nullptr) observer_->Ran(op, model::Name(op.kind), buffer);
    }
    return OkStatus();
  }

  const model::Program& program_;
  const FindCommunicator find_communicator_;
  std::vector<std::vector<std::vector<double>>> storage_;  // [root value][buffer][element]
  std::atomic<const char*> current_ = "";
  OperationObserver* observer_ = nullptr;
};

}  // namespace

StatusOr<std::unique_ptr<Executable>> ReferenceBackend::Prepare(
    const model::Program& program, const model::MemoryPlan& plan,
    const FindCommunicator& find_communicator) {
  if (plan.locations.size() != program.values.size()) {
    return InvalidArgument("the memory plan places {} values, but the program has {}",
                           plan.locations.size(), program.values.size());
  }
  ExecutedMatmuls matmuls;
  ForEachOp(program, [&](const model::Op& op) {
    if (IsMatmul(op.kind))
      matmuls.Note(program, op, model::DType::kFloat64, model::DType::kFloat64);
  });
  executed_matmuls_ = matmuls.List();
  return std::make_unique<ReferenceExecutable>(program, plan, find_communicator);
}

}  // namespace troupe::kernels
