#include "kernels/xla/runtime/xla_executable.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "kernels/backend/op_sequence.h"
#include "kernels/backend/reduce_control_word.h"
#include "kernels/xla/runtime/stage_roots.h"

namespace troupe::kernels::xla {

using model::Op;
using model::OpKind;
using model::Piece;
using model::ValueId;

XlaExecutable::XlaExecutable(const model::Program& program, const model::MemoryPlan& plan,
                             ExecutableOptions options)
    : program_(program),
      plan_(plan),
      options_(std::move(options)),
      groups_(StepGroups::Make(options_.stage, plan_, options_.use,
                               [this](const Op& op) { return RunsOnHost(op); })) {
  const std::set<ValueId> on_host =
      RootsUsedBy(options_.stage, [this](const Op& op) { return RunsOnHost(op); });
  storage_.resize(program_.values.size());
  for (const model::Value& value : program_.values) {
    if (value.view_of != model::kNoValue) continue;
    const model::Location& location = plan_.locations[value.id];
    const int copies =
        location.region == model::Region::kSaved ? plan_.buffers[location.chunk_index] : 1;
    for (int buffer = 0; buffer < copies; ++buffer) {
      void* const host =
          on_host.contains(value.id) ? options_.host->Address(value.id, buffer) : nullptr;
      storage_[value.id].emplace_back(value, options_.stage.StorageShape(value.id),
                                      static_cast<std::byte*>(host));
    }
  }
  const StagePrograms& stage = options_.stage;
  const auto name = [this](const StageOps& ops) {
    for (const StageOp& op : ops) names_[&op.any()] = OperationName(program_, op.any());
  };
  for (size_t chunk = 0; chunk < program_.ops.size(); ++chunk) {
    for (size_t piece = 0; piece < program_.ops[chunk].size(); ++piece)
      name(stage.Ops(static_cast<int>(chunk), static_cast<Piece>(piece)));
  }
  name(stage.update());
  name(stage.initialize());
  FindWaits();
  for (const PieceGroup& group : groups_.groups()) {
    for (const StepPiece& piece : group.pieces) {
      const StageOps& ops = OpsOf(stage, piece);
      roots_of_[&ops] = RootsUsed(stage, ops, 0, ops.size());
    }
  }
}

std::optional<XlaExecutable::Wait> XlaExecutable::WaitOf(const Op& begun,
                                                         const StepPiece& piece) const {
  const StageOps& ops = OpsOf(options_.stage, piece);
  const auto wait = std::ranges::find_if(ops, [&](const StageOp& op) {
    return op.any().kind == OpKind::kWait && op.any().inputs[0] == begun.outputs[0];
  });
  if (wait == ops.end()) return std::nullopt;
  return Wait{piece, static_cast<size_t>(wait - ops.begin())};
}

void XlaExecutable::FindWaits() {
  for (size_t chunk = 0; chunk < program_.ops.size(); ++chunk) {
    const auto piece_of = [&](size_t piece) {
      return StepPiece{static_cast<int>(chunk), static_cast<Piece>(piece)};
    };
    const size_t pieces = program_.ops[chunk].size();
    for (size_t piece = 0; piece < pieces; ++piece) {
      for (const StageOp& begun : OpsOf(options_.stage, piece_of(piece))) {
        const Op& op = begun.any();
        if (!op.asynchronous || !RunsOnHost(op)) continue;
        std::optional<Wait> wait = WaitOf(op, piece_of(piece));
        // The kWait of a gathered weight may be in F, and that of a gradient in Reduce.
        for (size_t other = 0; !wait.has_value() && other < pieces; ++other)
          wait = WaitOf(op, piece_of(other));
        TROUPE_CHECK(wait.has_value(), "nobody waits for {}", names_.at(&op));
        waits_[&op] = *wait;
      }
    }
  }
}

bool XlaExecutable::RunsOnHost(const Op& op) const {
  if (options_.host == nullptr) return false;
  if (op.kind == OpKind::kWait) {
    const StageOp* const begun = options_.stage.BegunBy(op);
    return begun != nullptr && RunsOnHost(begun->any());
  }
  return !options_.stage.IsWithin(op) && CommunicatorOf(op, options_.find_communicator) != nullptr;
}

// Operations [begin, end) as steps without programs.
std::vector<XlaExecutable::Step> XlaExecutable::Cut(const List& list, size_t begin,
                                                    size_t end) const {
  std::vector<Step> steps;
  for (size_t i = begin; i < end; ++i) {
    const bool on_host = RunsOnHost((*list.ops)[i].any());
    if (steps.empty() || on_host || steps.back().on_host) {
      steps.emplace_back();
      steps.back().begin = i;
      steps.back().on_host = on_host;
    }
    steps.back().end = i + 1;
  }
  return steps;
}

Status XlaExecutable::Compile() {
  struct Whole {
    List list;
    bool evaluate = false;
    StatusOr<Steps> steps = Steps();
  };
  std::vector<Whole> wholes;
  for (const PieceGroup& group : groups_.groups()) {
    wholes.push_back({Joined(group)});
    if (!options_.use.evaluates) continue;
    for (const StepPiece& piece : group.pieces) {
      // Evaluations run these two pieces alone.
      const bool is_forward = piece.piece == Piece::kForward;
      if (is_forward || (piece.piece == Piece::kUnshard && group.pieces.size() > 1))
        wholes.push_back({Alone(piece, is_forward), is_forward});
    }
  }
  wholes.push_back({Initialization()});

  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < wholes.size(); i = next++) {
      Whole& whole = wholes[i];
      whole.steps = MakeSteps(whole.list, 0, whole.list.ops->size(), whole.evaluate);
    }
  };
  // The calling thread compiles nothing: a compiler leaves the heap of its thread in pieces, and
  // each step allocates on this thread's.
  std::vector<std::thread> compilers;
  const size_t threads = std::min(static_cast<size_t>(options_.threads), wholes.size());
  for (size_t t = 0; t < threads; ++t) compilers.emplace_back(work);
  for (std::thread& compiler : compilers) compiler.join();
  for (Whole& whole : wholes) {
    TROUPE_RETURN_IF_ERROR(whole.steps.status());
    steps_[{whole.list.ops, 0, whole.list.ops->size(), whole.evaluate}] = *std::move(whole.steps);
  }
  return OkStatus();
}

StatusOr<XlaExecutable::Steps*> XlaExecutable::StepsOf(const List& list, size_t begin, size_t end,
                                                       bool evaluate) {
  const Key key{list.ops, begin, end, evaluate};
  if (const auto found = steps_.find(key); found != steps_.end()) return &found->second;
  TROUPE_ASSIGN_OR_RETURN(Steps steps, MakeSteps(list, begin, end, evaluate));
  return &(steps_[key] = std::move(steps));
}

StatusOr<XlaExecutable::Steps> XlaExecutable::MakeSteps(const List& list, size_t begin, size_t end,
                                                        bool evaluate) const {
  Steps steps = Cut(list, begin, end);
  for (Step& step : steps) {
    const OpRange range{*list.ops, step.begin, step.end, evaluate, *list.values};
    step.used = RootsUsed(options_.stage, *list.ops, step.begin, step.end);
    step.dead = DeadAfter(options_.stage, plan_, range);
    if (step.on_host) continue;
    TROUPE_ASSIGN_OR_RETURN(step.text, WriteSegment(options_.stage, plan_, range));
    if (step.text.module.empty()) continue;
    const std::string name = fmt::format("{} … {}", names_.at(&(*list.ops)[step.begin].any()),
                                         names_.at(&(*list.ops)[step.end - 1].any()));
    auto compiled = options_.programs->Find(step.text.module, options_.devices, name);
    if (!compiled.ok()) return Annotate(compiled.status(), "compile " + name);
    step.program = *std::move(compiled);
    step.text.module.clear();
  }
  return steps;
}

XlaExecutable::List XlaExecutable::Alone(const StepPiece& piece, bool evaluate) const {
  return {&OpsOf(options_.stage, piece), evaluate ? &groups_.evaluation() : &groups_.alone()};
}

bool XlaExecutable::keeps_gradients() const {
  return options_.use.reads_gradients || !groups_.groups().front().values.only_microbatch;
}

Status XlaExecutable::BeginPart(StepPart) {
  in_part_ = true;
  return OkStatus();
}

Status XlaExecutable::EndPart() {
  in_part_ = false;
  return OkStatus();
}

Status XlaExecutable::Run(int chunk_index, Piece piece, int buffer, const RunOptions& options) {
  return RunOrWait({{chunk_index, piece}, buffer, options});
}

Status XlaExecutable::RunUpdate() { return RunOrWait({}); }

Status XlaExecutable::RunOrWait(const PieceRun& run) {
  const size_t count = OpsOf(options_.stage, run.piece).size();
  const bool is_whole = run.options.first_op == 0 && EndOfRun(run.options, count) == count;
  const PieceGroup* const group =
      in_part_ && is_whole && !run.options.evaluate ? groups_.Of(run.piece) : nullptr;
  if (group != waiting_group_ || (group != nullptr && group->pieces[waiting_.size()] != run.piece))
    TROUPE_RETURN_IF_ERROR(RunWaiting());
  if (group == nullptr || group->pieces[waiting_.size()] != run.piece) return RunAlone(run);
  waiting_.push_back(run);
  waiting_group_ = group;
  if (waiting_.size() < group->pieces.size()) return OkStatus();
  const std::vector<PieceRun> runs = std::exchange(waiting_, {});
  waiting_group_ = nullptr;
  return RunSteps(Joined(*group), runs);
}

Status XlaExecutable::RunWaiting() {
  waiting_group_ = nullptr;
  for (const PieceRun& run : std::exchange(waiting_, {})) TROUPE_RETURN_IF_ERROR(RunAlone(run));
  return OkStatus();
}

bool XlaExecutable::WaitingPieceUses(ValueId root) const {
  return std::ranges::any_of(waiting_, [&](const PieceRun& run) {
    return roots_of_.at(&OpsOf(options_.stage, run.piece)).contains(root);
  });
}

Status XlaExecutable::RunAlone(const PieceRun& run) {
  return RunSteps(Alone(run.piece, run.options.evaluate), {&run, 1});
}

Status XlaExecutable::PrepareRun(int chunk_index, Piece piece, const RunOptions& options) {
  const List list = Alone({chunk_index, piece}, options.evaluate);
  const size_t begin = options.first_op, end = EndOfRun(options, list.ops->size());
  return begin >= end ? OkStatus() : StepsOf(list, begin, end, options.evaluate).status();
}

Status XlaExecutable::RunInitialize() {
  TROUPE_RETURN_IF_ERROR(RunWaiting());
  return RunSteps(Initialization(), std::vector<PieceRun>(1));
}

Status XlaExecutable::RunSteps(const List& list, std::span<const PieceRun> runs) {
  const RunOptions& first = runs[0].options;
  const size_t begin = first.first_op;
  const size_t end = runs.size() == 1 ? EndOfRun(first, list.ops->size()) : list.ops->size();
  if (begin >= end) return OkStatus();
  const auto starts = [](const PieceRun& run) { return run.options.first_microbatch; };
  const bool first_microbatch = std::ranges::any_of(runs, starts);
  const int buffer = std::ranges::max_element(runs, {}, &PieceRun::buffer)->buffer;
  const bool evaluate = first.evaluate;
  TROUPE_ASSIGN_OR_RETURN(Steps* const steps, StepsOf(list, begin, end, evaluate));
  // The call that operation `index` belongs to.
  const auto call = [&](size_t index) {
    const auto after = std::ranges::upper_bound(list.begins, index);
    return static_cast<size_t>(after - list.begins.begin()) - 1;
  };
  for (const Step& step : *steps) {
    const Op& op = (*list.ops)[step.begin].any();
    current_.store(names_.at(&op).c_str(), std::memory_order_relaxed);
    const size_t c = call(step.begin);
    TROUPE_RETURN_IF_ERROR(WaitFor(step.used));
    TROUPE_RETURN_IF_ERROR(Annotate(step.on_host
                                        ? RunOnHost(step, op, step.begin - list.begins[c], runs[c])
                                        : RunProgram(step, buffer, first_microbatch),
                                    CurrentOperation()));
    for (const ValueId root : step.dead) StorageOf(root, buffer).Drop();
    if (observer_ == nullptr) continue;
    for (size_t i = step.begin; i < step.end; ++i) Notify((*list.ops)[i], runs[call(i)]);
  }
  return OkStatus();
}

Status XlaExecutable::RunProgram(const Step& step, int buffer, bool first_microbatch) {
  if (step.program == nullptr) return OkStatus();
  const std::lock_guard lock(storage_mutex_);
  Client& client = options_.programs->client();
  std::vector<const Buffer*> arguments;
  for (size_t a = 0; a < step.text.arguments.size(); ++a) {
    ValueStorage& storage = StorageOf(step.text.arguments[a], buffer);
    TROUPE_ASSIGN_OR_RETURN(const Buffer* const argument,
                            a < step.text.first_unread ? storage.OnDevice(client, device())
                                                       : storage.ToReplace(client, device()));
    arguments.push_back(argument);
  }
  if (step.text.reads_first_microbatch) {
    std::unique_ptr<Buffer>& flag = first_microbatch_[first_microbatch ? 1 : 0];
    if (flag == nullptr) {
      const int32_t number = first_microbatch ? 1 : 0;
      // A rank's part of the scalars of a slice is a tensor of one element.
      const Shape shape(options_.stage.ranks() > 1 ? 1 : 0, 1);
      TROUPE_ASSIGN_OR_RETURN(flag, client.Upload(model::DType::kInt32, shape,
                                                  std::as_bytes(std::span(&number, 1)), device()));
    }
    arguments.push_back(flag.get());
  }
  // A temporary value that is overwritten frees its memory before the run needs more.
  for (size_t r = 0; r < step.text.results.size(); ++r) {
    if (step.text.aliases[r] < 0) StorageOf(step.text.results[r], buffer).Drop();
  }
  TROUPE_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Buffer>> results,
                          step.program->Run(arguments, {options_.partition, ++launches_}));
  for (size_t r = 0; r < results.size(); ++r)
    StorageOf(step.text.results[r], buffer).SetOnDevice(std::move(results[r]));
  return OkStatus();
}

Status XlaExecutable::RunOnHost(const Step& step, const Op& op, size_t index, const PieceRun& run) {
  if (op.last_microbatch && !run.options.last_microbatch) return OkStatus();
  if (op.gradient_in_forward && run.options.evaluate) return OkStatus();
  // RunSteps has waited for its roots.
  if (op.kind == OpKind::kWait) return OkStatus();
  {
    const std::lock_guard lock(storage_mutex_);
    for (const std::vector<ValueId>* values : {&op.inputs, &op.outputs}) {
      for (const ValueId id : *values) {
        int64_t offset = 0;
        TROUPE_RETURN_IF_ERROR(StorageOf(id, run.buffer, &offset).OnHost().status());
      }
    }
  }
  if (!run.piece.chunk_index.has_value()) return ReduceOfRank(op);
  TROUPE_RETURN_IF_ERROR(RunOneOnHost(run, index));
  if (!op.asynchronous) {
    NoteWrittenOnHost(op, run.buffer);
    return OkStatus();
  }
  const Wait& wait = waits_.at(&op);
  in_flight_.push_back({&op, &step.used, {wait.piece, run.buffer, run.options}, wait.index});
  return OkStatus();
}

Status XlaExecutable::RunOneOnHost(const PieceRun& run, size_t index) {
  RunOptions only = run.options;
  only.first_op = static_cast<int>(index);
  only.end_op = only.first_op + 1;
  return options_.host->Run(*run.piece.chunk_index, run.piece.piece, run.buffer, only);
}

Status XlaExecutable::WaitFor(const std::set<ValueId>& roots) {
  for (auto begun = in_flight_.begin(); begun != in_flight_.end();) {
    const auto is_used = [&](ValueId root) { return roots.contains(root); };
    if (std::ranges::none_of(*begun->roots, is_used)) {
      ++begun;
      continue;
    }
    TROUPE_RETURN_IF_ERROR(RunOneOnHost(begun->run, begun->wait_index));
    NoteWrittenOnHost(*begun->op, begun->run.buffer);
    begun = in_flight_.erase(begun);
  }
  return OkStatus();
}

void XlaExecutable::NoteWrittenOnHost(const Op& op, int buffer) {
  const std::lock_guard lock(storage_mutex_);
  for (const ValueId id : op.outputs) {
    int64_t offset = 0;
    StorageOf(id, buffer, &offset).NoteWrittenOnHost();
  }
}

// A reduction of the update: the control word, or totals of routers.
Status XlaExecutable::ReduceOfRank(const Op& op) {
  Communicator* const group = CommunicatorOf(op, options_.find_communicator);
  const auto numbers = [this](ValueId value, ValueStorage** storage) -> StatusOr<double*> {
    int64_t offset = 0;
    *storage = &StorageOf(value, 0, &offset);
    TROUPE_ASSIGN_OR_RETURN(const std::span<std::byte> bytes, (*storage)->HostBytes());
    return reinterpret_cast<double*>(bytes.data() + offset);
  };
  ValueStorage* storage = nullptr;
  if (op.kind == OpKind::kControlReduce) {
    TROUPE_ASSIGN_OR_RETURN(double* const word, numbers(op.inputs[0], &storage));
    TROUPE_RETURN_IF_ERROR(ReduceControlWord(group, word));
    storage->NoteWrittenOnHost();
    return OkStatus();
  }
  const auto* sum = std::get_if<model::AllReduceAttributes>(&op.attributes);
  if (sum == nullptr || sum->reduce != model::ReduceKind::kSum ||
      program_.value(op.inputs[0]).dtype != model::DType::kFloat64) {
    return Unimplemented("in the update, only sums in float64 are reduced on XLA");
  }
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const double* const from, numbers(op.inputs[i], &storage));
    TROUPE_ASSIGN_OR_RETURN(double* const to, numbers(op.outputs[i], &storage));
    const int64_t count = program_.value(op.outputs[i]).elements();
    if (to != from) std::copy_n(from, count, to);
    TROUPE_RETURN_IF_ERROR(group->AllReduce(to, count, SumFloat64(), sum->purpose));
    storage->NoteWrittenOnHost();
  }
  return OkStatus();
}

void XlaExecutable::Notify(const StageOp& op, const PieceRun& run) {
  const Op* const own = op.of_rank[options_.partition];
  if (own == nullptr || (run.options.evaluate && own->gradient_in_forward)) return;
  if (own->last_microbatch && !run.options.last_microbatch) return;
  observer_->Ran(*own, names_.at(&op.any()).c_str(), run.buffer);
}

ValueStorage& XlaExecutable::StorageOf(ValueId root, int buffer) {
  std::vector<ValueStorage>& copies = storage_[root];
  return copies[copies.size() == 1 ? 0 : static_cast<size_t>(buffer)];
}

ValueStorage& XlaExecutable::StorageOf(ValueId value, int buffer, int64_t* offset_bytes) {
  int64_t elements = 0;
  const ValueId root = RootOf(program_, value, &elements);
  *offset_bytes = elements * model::SizeOf(program_.value(value).dtype);
  return StorageOf(root, buffer);
}

Status XlaExecutable::CheckSize(ValueId value, size_t bytes) const {
  const model::Value& v = program_.value(value);
  if (static_cast<int64_t>(bytes) == v.bytes()) return OkStatus();
  return InvalidArgument("{} has {} bytes, not {}", v.name, v.bytes(), bytes);
}

Status XlaExecutable::Write(ValueId value, int buffer, std::span<const std::byte> bytes) {
  TROUPE_RETURN_IF_ERROR(CheckSize(value, bytes.size()));
  int64_t offset = 0;
  if (!waiting_.empty() && WaitingPieceUses(RootOf(program_, value, &offset)))
    TROUPE_RETURN_IF_ERROR(RunWaiting());
  offset = 0;
  const std::lock_guard lock(storage_mutex_);
  ValueStorage& storage = StorageOf(value, buffer, &offset);
  TROUPE_ASSIGN_OR_RETURN(std::span<std::byte> host, storage.HostBytes());
  // The rest of the root stays.
  if (host.size() != bytes.size()) {
    TROUPE_ASSIGN_OR_RETURN(host, storage.OnHost());
  }
  // GCC makes std::ranges::copy of const bytes a loop over single bytes.
  std::copy(bytes.begin(), bytes.end(), host.begin() + offset);
  storage.NoteWrittenOnHost();
  return OkStatus();
}

Status XlaExecutable::Read(ValueId value, int buffer, std::span<std::byte> bytes) {
  TROUPE_RETURN_IF_ERROR(RunWaiting());
  TROUPE_RETURN_IF_ERROR(CheckSize(value, bytes.size()));
  const std::lock_guard lock(storage_mutex_);
  int64_t offset = 0;
  TROUPE_ASSIGN_OR_RETURN(const std::span<const std::byte> host,
                          StorageOf(value, buffer, &offset).OnHost());
  std::copy_n(host.begin() + offset, bytes.size(), bytes.begin());
  return OkStatus();
}

Status XlaExecutable::Copy(ValueId from, int from_buffer, ValueId to, int to_buffer) {
  std::vector<std::byte> bytes(static_cast<size_t>(program_.value(from).bytes()));
  TROUPE_RETURN_IF_ERROR(Read(from, from_buffer, bytes));
  return Write(to, to_buffer, bytes);
}

Status XlaExecutable::ReadPart(ValueId value, int64_t offset_bytes, std::span<std::byte> bytes) {
  const std::lock_guard lock(storage_mutex_);
  int64_t offset = 0;
  TROUPE_ASSIGN_OR_RETURN(const std::span<const std::byte> host,
                          StorageOf(value, 0, &offset).OnHost());
  std::copy_n(host.begin() + offset + offset_bytes, bytes.size(), bytes.begin());
  return OkStatus();
}

Status XlaExecutable::Send(ValueId value, int buffer, Communicator& link) {
  TROUPE_RETURN_IF_ERROR(RunWaiting());
  {
    const std::lock_guard lock(storage_mutex_);
    int64_t offset = 0;
    TROUPE_RETURN_IF_ERROR(StorageOf(value, buffer, &offset).OnHost().status());
  }
  return ImmediateExecutable::Send(value, buffer, link);
}

Status XlaExecutable::Receive(ValueId value, int buffer, Communicator& link) {
  TROUPE_RETURN_IF_ERROR(RunWaiting());
  TROUPE_RETURN_IF_ERROR(ImmediateExecutable::Receive(value, buffer, link));
  const std::lock_guard lock(storage_mutex_);
  int64_t offset = 0;
  StorageOf(value, buffer, &offset).NoteWrittenOnHost();
  return OkStatus();
}

StatusOr<std::span<std::byte>> XlaExecutable::Memory(ValueId value, int buffer) {
  int64_t offset = 0;
  TROUPE_ASSIGN_OR_RETURN(const std::span<std::byte> bytes,
                          StorageOf(value, buffer, &offset).HostBytes());
  return bytes.subspan(offset, static_cast<size_t>(program_.value(value).bytes()));
}

}  // namespace troupe::kernels::xla
