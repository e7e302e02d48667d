#include "kernels/cuda/runtime/cuda_executable.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "kernels/cuda/runtime/cuda_delayed_read.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int64_t kBounceBytes = 8 << 20;

// Calls `body(offset, bytes)` for pieces of at most kBounceBytes.
template <typename Body>
Status InPieces(size_t bytes, const Body& body) {
  for (size_t offset = 0; offset < bytes; offset += kBounceBytes) {
    TROUPE_RETURN_IF_ERROR(body(offset, std::min<size_t>(bytes - offset, kBounceBytes)));
  }
  return OkStatus();
}

}  // namespace

CudaExecutable::CudaExecutable(const model::Program& program, const model::MemoryPlan& plan,
                               Device& device, const DeviceLibraries& libraries,
                               const FindCommunicator& find_communicator,
                               const MakeDeviceCommunicator& make_communicator,
                               std::vector<std::string>* fallbacks, int64_t* graph_captures)
    : program_(program),
      plan_(plan),
      device_(device),
      find_communicator_(find_communicator),
      make_communicator_(make_communicator),
      stalls_(device),
      preparation_(program, plan, device, libraries, stalls_,
                   [this](const model::CollectiveGroup& group) {
                     Communicator* const host =
                         find_communicator_ ? find_communicator_(group) : nullptr;
                     return host == nullptr ? nullptr : communicators_.at(host).get();
                   }),
      links_(device, stalls_),
      fallbacks_(*fallbacks),
      graph_captures_(*graph_captures) {}

CudaExecutable::~CudaExecutable() {
  open_ = nullptr;  // may be set after an error within a part of a step
  Finish().IgnoreError();
  for (const Part& part : parts_) {
    if (part.graph) device_.Release(*part.graph);
  }
  communicators_.clear();
}

Status CudaExecutable::Prepare() {
  Status status = OkStatus();
  ForEachOp(program_, [&](const model::Op& op) {
    Communicator* const host = CommunicatorOf(op, find_communicator_);
    if (!status.ok() || host == nullptr || communicators_.contains(host)) return;
    status = MakeCommunicator(*host, OperationName(program_, op));
  });
  TROUPE_RETURN_IF_ERROR(status);
  TROUPE_ASSIGN_OR_RETURN(finished_, device_.MakeEvent());
  TROUPE_ASSIGN_OR_RETURN(bounce_, device_.AllocatePinned(kBounceBytes));
  TROUPE_RETURN_IF_ERROR(stalls_.Prepare());
  TROUPE_RETURN_IF_ERROR(links_.Prepare(program_, plan_));
  TROUPE_RETURN_IF_ERROR(preparation_.Allocate());
  pieces_.resize(program_.ops.size());
  for (size_t chunk = 0; chunk < pieces_.size(); ++chunk) {
    for (const std::vector<model::Op>& ops : program_.ops[chunk]) {
      std::vector<Instructions>& buffers = pieces_[chunk].emplace_back();
      for (int buffer = 0; buffer < plan_.buffers[chunk]; ++buffer) {
        TROUPE_ASSIGN_OR_RETURN(Instructions made, Make(ops, buffer));
        buffers.push_back(std::move(made));
      }
    }
  }
  TROUPE_ASSIGN_OR_RETURN(update_, Make(program_.update, 0));
  TROUPE_ASSIGN_OR_RETURN(initialize_, Make(program_.initialize, 0));
  std::ranges::copy(preparation_.fallbacks(), std::back_inserter(fallbacks_));
  return preparation_.Finish();
}

Status CudaExecutable::MakeCommunicator(Communicator& host, const std::string& user) {
  if (!make_communicator_) {
    return InvalidArgument("{} has {} ranks, but this device has no collectives between ranks",
                           user, host.size());
  }
  TROUPE_ASSIGN_OR_RETURN(communicators_[&host], make_communicator_(host));
  return OkStatus();
}

StatusOr<CudaExecutable::Instructions> CudaExecutable::Make(const std::vector<model::Op>& ops,
                                                            int buffer) {
  Instructions instructions;
  for (const model::Op& op : ops) {
    Instruction& made = instructions.emplace_back();
    made.name = OperationName(program_, op);
    made.gradient_in_forward = op.gradient_in_forward;
    made.last_microbatch = op.last_microbatch;
    made.overwrites = OverwritesOf(program_, op);
    for (const bool accumulates : {false, true}) {
      const bool comes = accumulates ? made.overwrites != Overwrites::kEveryRun
                                     : made.overwrites != Overwrites::kNever;
      if (!comes) continue;
      TROUPE_ASSIGN_OR_RETURN(made.commands[accumulates ? 1 : 0],
                              preparation_.Make(op, buffer, accumulates));
      for (const Command& command : made.commands[accumulates ? 1 : 0]) {
        if (const auto* const launch = std::get_if<KernelLaunch>(&command.what)) {
          TROUPE_RETURN_IF_ERROR(device_.Load(*launch));
        }
        const auto* const library = std::get_if<LibraryCommand>(&command.what);
        if (library != nullptr && library->host_waits) made.host_waits = true;
      }
    }
  }
  return instructions;
}

Status CudaExecutable::Connect() {
  // Each connection waits for the other ranks of its group. All ranks connect in the order of
  // names, so that they cannot deadlock.
  std::map<std::string_view, DeviceCommunicator*> by_name;
  for (const auto& [host, communicator] : communicators_)
    by_name.emplace(host->name(), communicator.get());
  for (const auto& [name, communicator] : by_name) {
    TROUPE_RETURN_IF_ERROR(communicator->Connect());
  }
  return links_.Connect();
}

Status CudaExecutable::EnqueueAll(const Instructions& instructions,
                                  const std::vector<model::Op>& ops, int buffer,
                                  const RunOptions& options) {
  const size_t end = EndOfRun(options, instructions.size());
  for (auto i = static_cast<size_t>(options.first_op); i < end; ++i) {
    const Instruction& instruction = instructions[i];
    if (options.evaluate && instruction.gradient_in_forward) continue;
    if (instruction.last_microbatch && !options.last_microbatch) continue;
    current_.store(instruction.name.c_str(), std::memory_order_relaxed);
    const bool accumulates = Accumulates(instruction.overwrites, options);
    if (instruction.host_waits) ++host_waits_;
    for (const Command& command : instruction.commands[accumulates ? 1 : 0]) {
      if (Status status = Enqueue(command, device_); !status.ok()) {
        return Annotate(status, instruction.name);
      }
    }
    if (observer_ != nullptr) {
      if (Status status = Finish(); !status.ok()) return Annotate(status, instruction.name);
      observer_->Ran(ops[i], instruction.name.c_str(), buffer);
    }
  }
  return OkStatus();
}

Status CudaExecutable::Run(int chunk_index, model::Piece piece, int buffer,
                           const RunOptions& options) {
  if (open_ != nullptr) {
    return open_->calls
        .Record({.kind = StepCall::Kind::kRun,
                 .chunk_index = chunk_index,
                 .piece = piece,
                 .buffer = buffer,
                 .options = options})
        .status();
  }
  const auto chunk = static_cast<size_t>(chunk_index);
  return EnqueueAll(pieces_[chunk][static_cast<size_t>(piece)][static_cast<size_t>(buffer)],
                    program_.Ops(chunk_index, piece), buffer, options);
}

Status CudaExecutable::RunUpdate() {
  if (open_ != nullptr) return open_->calls.Record({.kind = StepCall::Kind::kRunUpdate}).status();
  return EnqueueAll(update_, program_.update, 0, {});
}

Status CudaExecutable::RunInitialize() {
  return EnqueueAll(initialize_, program_.initialize, 0, {});
}

Status CudaExecutable::CheckSize(model::ValueId value, size_t bytes) const {
  const model::Value& v = program_.value(value);
  if (static_cast<int64_t>(bytes) == v.bytes()) return OkStatus();
  return InvalidArgument("{} has {} bytes, not {}", v.name, v.bytes(), bytes);
}

Status CudaExecutable::Write(model::ValueId value, int buffer, std::span<const std::byte> bytes) {
  TROUPE_RETURN_IF_ERROR(CheckSize(value, bytes.size()));
  if (open_ == nullptr) return Upload(Address(value, buffer), bytes);
  TROUPE_ASSIGN_OR_RETURN(const int64_t offset,
                          open_->calls.Record({.kind = StepCall::Kind::kWrite,
                                               .buffer = buffer,
                                               .value = value,
                                               .bytes = static_cast<int64_t>(bytes.size())}));
  Stage(open_, offset, bytes);
  return OkStatus();
}

Status CudaExecutable::Upload(void* to, std::span<const std::byte> bytes) {
  return InPieces(bytes.size(), [&](size_t offset, size_t count) {
    std::memcpy(bounce_.get(), bytes.data() + offset, count);
    TROUPE_RETURN_IF_ERROR(device_.Copy(static_cast<char*>(to) + offset, bounce_.get(),
                                        static_cast<int64_t>(count), Stream::kCompute));
    return Finish();
  });
}

Status CudaExecutable::Read(model::ValueId value, int buffer, std::span<std::byte> bytes) {
  TROUPE_CHECK(open_ == nullptr, "a value is read in the middle of a part of a step");
  TROUPE_RETURN_IF_ERROR(CheckSize(value, bytes.size()));
  const char* const from = preparation_.Address(value, buffer);
  return InPieces(bytes.size(), [&](size_t offset, size_t count) {
    TROUPE_RETURN_IF_ERROR(
        device_.Copy(bounce_.get(), from + offset, static_cast<int64_t>(count), Stream::kCompute));
    TROUPE_RETURN_IF_ERROR(Finish());
    std::memcpy(bytes.data() + offset, bounce_.get(), count);
    return OkStatus();
  });
}

std::shared_ptr<void> CudaExecutable::Pin(std::span<std::byte> memory) {
  auto pinned = device_.Pin(memory.data(), static_cast<int64_t>(memory.size()));
  if (pinned.ok()) return *std::move(pinned);
  fallbacks_.push_back(
      fmt::format("snapshot: copies into pageable memory: {}", Message(pinned.status())));
  return nullptr;
}

StatusOr<std::unique_ptr<DelayedRead>> CudaExecutable::MakeDelayedRead(
    std::vector<ValueBytes> values) {
  std::vector<CudaDelayedRead::Source> sources;
  for (const ValueBytes& value : values) {
    TROUPE_RETURN_IF_ERROR(CheckSize(value.value, static_cast<size_t>(value.bytes)));
    sources.push_back({preparation_.Address(value.value, 0), value.bytes});
  }
  return CudaDelayedRead::Make(device_, stalls_, std::move(sources));
}

Status CudaExecutable::Copy(model::ValueId from, int from_buffer, model::ValueId to,
                            int to_buffer) {
  const int64_t bytes = program_.value(from).bytes();
  if (open_ != nullptr) {
    return open_->calls
        .Record({.kind = StepCall::Kind::kCopy,
                 .buffer = to_buffer,
                 .value = to,
                 .from = from,
                 .from_buffer = from_buffer})
        .status();
  }
  return device_.Copy(Address(to, to_buffer), Address(from, from_buffer), bytes, Stream::kCompute);
}

PipelineLinks::Boundary CudaExecutable::BoundaryOf(model::ValueId value, int buffer) const {
  return {value, buffer, preparation_.Address(value, buffer),
          static_cast<size_t>(program_.value(value).bytes())};
}

Status CudaExecutable::AddLink(Communicator& link) {
  TROUPE_RETURN_IF_ERROR(MakeCommunicator(link, link.name()));
  return links_.Add(link, *communicators_.at(&link));
}

Status CudaExecutable::Send(model::ValueId value, int buffer, Communicator& link) {
  if (open_ == nullptr) return links_.Send(BoundaryOf(value, buffer), link);
  return open_->calls
      .Record({.kind = StepCall::Kind::kSend, .buffer = buffer, .value = value, .link = &link})
      .status();
}

Status CudaExecutable::WaitSend(model::ValueId value, int buffer) {
  if (open_ == nullptr) return links_.WaitSend(value, buffer);
  return open_->calls.Record({.kind = StepCall::Kind::kWaitSend, .buffer = buffer, .value = value})
      .status();
}

Status CudaExecutable::PostReceive(model::ValueId value, int buffer, Communicator& link) {
  if (open_ == nullptr) return links_.PostReceive(BoundaryOf(value, buffer), link);
  return open_->calls
      .Record(
          {.kind = StepCall::Kind::kPostReceive, .buffer = buffer, .value = value, .link = &link})
      .status();
}

Status CudaExecutable::Receive(model::ValueId value, int buffer, Communicator& link) {
  if (open_ == nullptr) return links_.Receive(BoundaryOf(value, buffer), link);
  return open_->calls
      .Record({.kind = StepCall::Kind::kReceive, .buffer = buffer, .value = value, .link = &link})
      .status();
}

Status CudaExecutable::Finish() {
  TROUPE_CHECK(open_ == nullptr, "the host waits in the middle of a part of a step");
  ++host_waits_;
  TROUPE_RETURN_IF_ERROR(device_.Record(finished_, Stream::kCompute));
  return device_.Finish(finished_);
}

Status CudaExecutable::BeginPart(StepPart part) {
  TROUPE_CHECK(open_ == nullptr, "a part of a step begins in the middle of another one");
  if (observer_ != nullptr) return OkStatus();
  open_ = &parts_[static_cast<size_t>(part)];
  open_->calls.Restart();
  if (open_->runs < 2) return OkStatus();
  return device_.Finish(open_->uploaded[static_cast<size_t>(open_->runs % 2)]);
}

void CudaExecutable::Stage(Part* part, int64_t offset, std::span<const std::byte> bytes) {
  if (part->runs == 0) {
    part->first_bytes.resize(static_cast<size_t>(part->calls.bytes()));
    std::copy(bytes.begin(), bytes.end(),
              part->first_bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    return;
  }
  char* const staged = part->pinned[static_cast<size_t>(part->runs % 2)].get();
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(staged + offset));
}

Status CudaExecutable::EndPart() {
  if (open_ == nullptr) return OkStatus();
  Part& part = *std::exchange(open_, nullptr);
  TROUPE_RETURN_IF_ERROR(part.calls.Close());
  if (part.runs == 0) TROUPE_RETURN_IF_ERROR(Allocate(&part));
  const auto turn = static_cast<size_t>(part.runs++ % 2);
  if (part.calls.bytes() > 0) {
    TROUPE_RETURN_IF_ERROR(device_.Copy(part.staged.get(), part.pinned[turn].get(),
                                        part.calls.bytes(), Stream::kCompute));
    TROUPE_RETURN_IF_ERROR(device_.Record(part.uploaded[turn], Stream::kCompute));
  }
  if (part.runs == 1) {
    if (Status captured = Capture(&part); !captured.ok()) {
      fallbacks_.push_back(
          fmt::format("graph of a step's part: launches one by one: {}", Message(captured)));
    }
  }
  if (!part.graph) return EnqueueCalls(part);
  ++graph_launches_;
  return device_.LaunchGraph(*part.graph);
}

Status CudaExecutable::Allocate(Part* part) {
  const int64_t bytes = part->calls.bytes();
  if (bytes == 0) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(part->staged, device_.Allocate(bytes));
  for (int turn = 0; turn < 2; ++turn) {
    TROUPE_ASSIGN_OR_RETURN(part->pinned[turn], device_.AllocatePinned(bytes));
    TROUPE_ASSIGN_OR_RETURN(part->uploaded[turn], device_.MakeEvent());
  }
  std::memcpy(part->pinned[0].get(), part->first_bytes.data(), part->first_bytes.size());
  part->first_bytes = {};
  return OkStatus();
}

Status CudaExecutable::EnqueueCalls(const Part& part) {
  links_.Restart();  // a failed capture may have stopped anywhere
  for (const StepCall& call : part.calls.calls()) {
    switch (call.kind) {
      case StepCall::Kind::kRun:
        TROUPE_RETURN_IF_ERROR(Run(call.chunk_index, call.piece, call.buffer, call.options));
        break;
      case StepCall::Kind::kRunUpdate:
        TROUPE_RETURN_IF_ERROR(RunUpdate());
        break;
      case StepCall::Kind::kWrite:
        TROUPE_RETURN_IF_ERROR(device_.Copy(Address(call.value, call.buffer),
                                            part.staged.get() + call.offset, call.bytes,
                                            Stream::kCompute));
        break;
      case StepCall::Kind::kCopy:
        TROUPE_RETURN_IF_ERROR(Copy(call.from, call.from_buffer, call.value, call.buffer));
        break;
      case StepCall::Kind::kSend:
        TROUPE_RETURN_IF_ERROR(Send(call.value, call.buffer, *call.link));
        break;
      case StepCall::Kind::kWaitSend:
        TROUPE_RETURN_IF_ERROR(WaitSend(call.value, call.buffer));
        break;
      case StepCall::Kind::kPostReceive:
        TROUPE_RETURN_IF_ERROR(PostReceive(call.value, call.buffer, *call.link));
        break;
      case StepCall::Kind::kReceive:
        TROUPE_RETURN_IF_ERROR(Receive(call.value, call.buffer, *call.link));
        break;
    }
  }
  return OkStatus();
}

Status CudaExecutable::CheckCaptures(const Part& part) const {
  for (const StepCall& call : part.calls.calls()) {
    if (call.kind != StepCall::Kind::kRun) continue;
    const auto chunk = static_cast<size_t>(call.chunk_index);
    for (const Instruction& instruction :
         pieces_[chunk][static_cast<size_t>(call.piece)][static_cast<size_t>(call.buffer)]) {
      if (instruction.host_waits) {
        return Unimplemented("{}: the host waits for counts of the device", instruction.name);
      }
    }
  }
  return OkStatus();
}

Status CudaExecutable::Capture(Part* part) {
  TROUPE_RETURN_IF_ERROR(CheckCaptures(*part));
  TROUPE_RETURN_IF_ERROR(device_.BeginCapture());
  const Status enqueued = EnqueueCalls(*part);
  const StatusOr<Graph> graph = device_.EndCapture();
  if (!enqueued.ok()) {
    if (graph.ok()) device_.Release(*graph);
    return enqueued;
  }
  TROUPE_RETURN_IF_ERROR(graph.status());
  part->graph = *graph;
  ++graph_captures_;
  return OkStatus();
}

}  // namespace troupe::kernels::cuda
