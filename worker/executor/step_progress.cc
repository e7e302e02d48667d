#include "worker/executor/step_progress.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

namespace troupe {
namespace {

struct PhaseText {
  const char* text;
  bool in_step;
  bool of_microbatch;
};

PhaseText TextOf(Phase phase) {
  switch (phase) {
    case Phase::kIdle:
      return {"idle", false, false};
    case Phase::kBuild:
      return {"building the stage program", false, false};
    case Phase::kConnect:
      return {"connecting to the other ranks", false, false};
    case Phase::kLoad:
      return {"loading parameters", false, false};
    case Phase::kWaitTicket:
      return {"waiting for a ticket", true, false};
    case Phase::kReadBatch:
      return {"reading the batch", true, false};
    case Phase::kReceive:
      return {"receiving", true, true};
    case Phase::kForward:
      return {"forward", true, true};
    case Phase::kBackward:
      return {"backward", true, true};
    case Phase::kInputGradient:
      return {"input gradient", true, true};
    case Phase::kWeightGradient:
      return {"weight gradient", true, true};
    case Phase::kWaitSends:
      return {"waiting for sends", true, false};
    case Phase::kReduce:
      return {"reducing gradients", true, false};
    case Phase::kUpdate:
      return {"update", true, false};
    case Phase::kValidate:
      return {"validation", true, false};
    case Phase::kCheckpoint:
      return {"checkpoint", true, false};
    case Phase::kUnshard:
      return {"gathering parameters", true, false};
    case Phase::kSaving:
      return {"writing a checkpoint", true, false};
    case Phase::kWaitResult:
      return {"waiting for its result", true, false};
  }
  return {"unknown", false, false};
}

}  // namespace

std::string Describe(const StepProgress& progress) {
  const PhaseText phase = TextOf(progress.phase.load(std::memory_order_relaxed));
  std::string text;
  if (phase.in_step) text = fmt::format("step {}: ", progress.step.load(std::memory_order_relaxed));
  text += phase.text;
  if (phase.of_microbatch) {
    text +=
        fmt::format(" of chunk {}, microbatch {}", progress.chunk.load(std::memory_order_relaxed),
                    progress.microbatch.load(std::memory_order_relaxed));
  }
  const std::string_view operation(progress.operation,
                                   strnlen(progress.operation, sizeof(progress.operation)));
  if (!operation.empty()) text += fmt::format(" ({})", operation);
  return text;
}

}  // namespace troupe
