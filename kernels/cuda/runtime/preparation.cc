#include "kernels/cuda/runtime/preparation.h"

#include <algorithm>

#include "kernels/backend/op_sequence.h"

namespace troupe::kernels::cuda {
namespace {

using model::Op;
using model::ValueId;

constexpr int64_t kAlignment = 256;

}  // namespace

Preparation::Preparation(const model::Program& program, const model::MemoryPlan& plan,
                         Device& device, const DeviceLibraries& libraries, const Stalls& stalls,
                         FindDeviceCommunicator find_communicator)
    : program_(program),
      device_(device),
      libraries_(libraries),
      stalls_(stalls),
      find_communicator_(std::move(find_communicator)),
      layout_(plan),
      rope_tables_(program),
      tables_bytes_(RoundUp(rope_tables_.bytes(), kAlignment)) {}

Status Preparation::Allocate() {
  Status status = OkStatus();
  ForEachOp(program_, [&](const Op& op) {
    if (status.ok()) status = Make(op, 0, true).status();
  });
  TROUPE_RETURN_IF_ERROR(status);
  TROUPE_ASSIGN_OR_RETURN(arena_, device_.Allocate(arena_bytes()));
  base_ = reinterpret_cast<uintptr_t>(arena_.get());
  tables_.resize(static_cast<size_t>(tables_bytes_));
  rope_tables_.Fill(std::span(tables_).first(static_cast<size_t>(rope_tables_.bytes())));
  return device_.Clear(At(0), layout_.bytes(), Stream::kCompute);
}

StatusOr<Commands> Preparation::Make(const Op& op, int buffer, bool accumulate) {
  op_ = &op;
  working_.taken = 0;
  of_communication_.taken = 0;
  tables_of_op_ = 0;
  Commands commands;
  if (Status status = MakeInto(&commands, op, buffer, accumulate); !status.ok()) {
    return Annotate(status, OperationName(program_, op));
  }
  return commands;
}

Status Preparation::Finish() {
  TROUPE_ASSIGN_OR_RETURN(const DeviceMemory pinned, device_.AllocatePinned(tables_bytes_));
  TROUPE_ASSIGN_OR_RETURN(const Event event, device_.MakeEvent());
  std::copy(tables_.begin(), tables_.end(), reinterpret_cast<std::byte*>(pinned.get()));
  TROUPE_RETURN_IF_ERROR(
      device_.Copy(At(layout_.bytes()), pinned.get(), tables_bytes_, Stream::kCompute));
  TROUPE_RETURN_IF_ERROR(device_.Record(event, Stream::kCompute));
  tables_.clear();
  return device_.Finish(event);
}

void Preparation::AddCopy(Commands* commands, const void* from, void* to, int64_t bytes) const {
  if (from != to && bytes > 0)
    commands->emplace_back(Stream::kCompute, CopyCommand{to, from, bytes});
}

int64_t Preparation::Working::Allocate(int64_t count) {
  const int64_t begin = taken;
  taken += RoundUp(count, kAlignment);
  bytes = std::max(bytes, taken);
  return begin;
}

char* Preparation::AllocateBytes(int64_t bytes) {
  return At(layout_.bytes() + tables_bytes_ + working_.Allocate(bytes));
}

char* Preparation::AllocateBytesForCommunication(int64_t bytes) {
  const int64_t begin = of_communication_.Allocate(bytes);
  return At(layout_.bytes() + tables_bytes_ + working_.bytes + begin);
}

const char* Preparation::TableBytes(std::span<const std::byte> contents) {
  const auto [found, is_new] = table_offsets_.try_emplace({op_, tables_of_op_++}, tables_bytes_);
  if (is_new) tables_bytes_ += RoundUp(static_cast<int64_t>(contents.size()), kAlignment);
  if (!tables_.empty()) {
    std::copy(contents.begin(), contents.end(),
              tables_.begin() + static_cast<std::ptrdiff_t>(found->second));
  }
  return At(layout_.bytes() + found->second);
}

}  // namespace troupe::kernels::cuda
