// The actions of a step with their receives and sends.
#include <chrono>

#include "worker/executor/executor.h"

namespace troupe {
namespace {

using kernels::RunOptions;
using model::kNoValue;
using model::Piece;

Phase PhaseOf(Piece piece) {
  switch (piece) {
    case Piece::kForward:
      return Phase::kForward;
    case Piece::kInputGradient:
      return Phase::kInputGradient;
    case Piece::kWeightGradient:
      return Phase::kWeightGradient;
    default:
      return Phase::kBackward;
  }
}

}  // namespace

Status Executor::RunReduce() {
  Enter(Phase::kReduce);
  for (size_t c = 0; c < program_.chunks.size(); ++c) {
    TROUPE_RETURN_IF_ERROR(executable_->Run(static_cast<int>(c), Piece::kReduce, 0, {}));
  }
  return OkStatus();
}

Status Executor::RunActions(int64_t step, const SampleBatch* batch, bool reduces) {
  Enter(Phase::kUnshard);
  for (size_t c = 0; c < program_.chunks.size(); ++c) {
    TROUPE_RETURN_IF_ERROR(executable_->Run(static_cast<int>(c), Piece::kUnshard, 0, {}));
  }
  for (const ActionRun& part : runs_) {
    const RankAction& action = options_.actions.actions[static_cast<size_t>(part.action)];
    RunOptions run;
    run.first_microbatch = action.first_microbatch;
    run.last_microbatch = action.last_microbatch && reduces;
    run.first_op = part.begin;
    run.end_op = part.end;
    const MicrobatchSamples samples = {batch, action.microbatch * options_.batch.micro_batch_size,
                                       step,
                                       options_.batch.FirstSlot(data_rank(), action.microbatch)};
    if (part.begins) TROUPE_RETURN_IF_ERROR(BeginAction(action, samples, run.evaluate));
    TROUPE_RETURN_IF_ERROR(RunPiece(action, run));
    if (part.ends) TROUPE_RETURN_IF_ERROR(EndAction(action));
  }
  return WaitSends();
}

Status Executor::RunAction(const RankAction& action, const MicrobatchSamples& samples,
                           const RunOptions& run) {
  TROUPE_RETURN_IF_ERROR(BeginAction(action, samples, run.evaluate));
  TROUPE_RETURN_IF_ERROR(RunPiece(action, run));
  return EndAction(action);
}

Status Executor::BeginAction(const RankAction& action, const MicrobatchSamples& samples,
                             bool evaluates) {
  const model::ChunkInterface& chunk = program_.chunks[action.chunk_index];
  if (action.piece == Piece::kForward) {
    // The send of the buffer's previous microbatch may still be in flight.
    TROUPE_RETURN_IF_ERROR(WaitSend(chunk.output, action.buffer));
    TROUPE_RETURN_IF_ERROR(WaitSend(chunk.input_gradient, action.buffer));
    TROUPE_RETURN_IF_ERROR(inputs_.Fill(action.chunk_index, action.buffer, samples, *executable_));
    if (action.receives) {
      TROUPE_RETURN_IF_ERROR(
          Receive(action, chunk.input,
                  *communicators_->Link(action.chunk - 1, LinkDirection::kActivation)));
    }
    if (action.buffer_below >= 0) {
      const model::ChunkInterface& below = program_.chunks[action.chunk_index - 1];
      TROUPE_RETURN_IF_ERROR(
          executable_->Copy(below.output, action.buffer_below, chunk.input, action.buffer));
    }
    if (action.sends && options_.actions.posts_gradient_receives && !evaluates &&
        chunk.output_gradient != kNoValue) {
      TROUPE_RETURN_IF_ERROR(
          executable_->PostReceive(chunk.output_gradient, action.buffer,
                                   *communicators_->Link(action.chunk, LinkDirection::kGradient)));
    }
  } else if (action.receives && chunk.output_gradient != kNoValue) {
    TROUPE_RETURN_IF_ERROR(WaitSend(chunk.output, action.buffer));
    TROUPE_RETURN_IF_ERROR(Receive(action, chunk.output_gradient,
                                   *communicators_->Link(action.chunk, LinkDirection::kGradient)));
  }
  return OkStatus();
}

Status Executor::RunPiece(const RankAction& action, const RunOptions& run) {
  Enter(PhaseOf(action.piece), action.chunk, action.microbatch);
  return executable_->Run(action.chunk_index, action.piece, action.buffer, run);
}

Status Executor::EndAction(const RankAction& action) {
  const model::ChunkInterface& chunk = program_.chunks[action.chunk_index];
  const bool up = action.piece == Piece::kForward;
  // Nobody needs the gradient of an input below which all parameters are frozen.
  if (!up && chunk.input_gradient == kNoValue) return OkStatus();
  if (action.buffer_below >= 0 && !up) {
    // Copied now, because this chunk's buffer may hold another microbatch before the chunk below
    // reads it.
    const model::ChunkInterface& below = program_.chunks[action.chunk_index - 1];
    TROUPE_RETURN_IF_ERROR(executable_->Copy(chunk.input_gradient, action.buffer,
                                             below.output_gradient, action.buffer_below));
  }
  if (!action.sends) return OkStatus();
  const LinkDirection direction = up ? LinkDirection::kActivation : LinkDirection::kGradient;
  Communicator* const link = communicators_->Link(up ? action.chunk : action.chunk - 1, direction);
  return executable_->Send(up ? chunk.output : chunk.input_gradient, action.buffer, *link);
}

Status Executor::Receive(const RankAction& action, model::ValueId value, Communicator& link) {
  Enter(Phase::kReceive, action.chunk, action.microbatch);
  const auto begin = std::chrono::steady_clock::now();
  const Status status = executable_->Receive(value, action.buffer, link);
  receive_wait_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return status;
}

Status Executor::WaitSend(model::ValueId value, int buffer) {
  return value == kNoValue ? OkStatus() : executable_->WaitSend(value, buffer);
}

Status Executor::WaitSends() {
  Enter(Phase::kWaitSends);
  for (size_t c = 0; c < program_.chunks.size(); ++c) {
    const model::ChunkInterface& chunk = program_.chunks[c];
    for (int buffer = 0; buffer < options_.actions.buffers[c]; ++buffer) {
      TROUPE_RETURN_IF_ERROR(WaitSend(chunk.output, buffer));
      TROUPE_RETURN_IF_ERROR(WaitSend(chunk.input_gradient, buffer));
    }
  }
  return OkStatus();
}

}  // namespace troupe
