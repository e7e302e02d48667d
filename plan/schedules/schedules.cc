#include "plan/schedules/schedules.h"

#include <algorithm>

#include "base/check.h"
#include "plan/schedules/dual_pipe_v.h"
#include "plan/schedules/gpipe.h"
#include "plan/schedules/interleaved_1f1b.h"
#include "plan/schedules/interleaved_order.h"
#include "plan/schedules/one_forward_one_backward.h"
#include "plan/schedules/zero_bubble_h1.h"
#include "plan/schedules/zero_bubble_v.h"

namespace troupe {
namespace {

struct Entry {
  std::string_view name;
  NamedSchedule schedule;
};

constexpr Entry kEntries[] = {
    {"GPipe", {ScheduleKind::kGPipe, 1}},
    {"1F1B", {ScheduleKind::k1F1B, 1}},
    {"Interleaved1F1B", {ScheduleKind::kInterleaved1F1B, 2}},
    {"ZBH1", {ScheduleKind::kZeroBubbleH1, 1}},
    {"InterleavedZeroBubble", {ScheduleKind::kZeroBubbleH1, 2}},
    {"ZBV", {ScheduleKind::kZeroBubbleV, 2}},
    {"ZBVZeroBubble", {ScheduleKind::kZeroBubbleV, 2}},
    {"DualPipeV", {ScheduleKind::kDualPipeV, 2}},
};

}  // namespace

std::optional<NamedSchedule> FindSchedule(std::string_view name) {
  for (const Entry& entry : kEntries) {
    if (entry.name == name) return entry.schedule;
  }
  return std::nullopt;
}

const char* KnownSchedules() {
  return "GPipe, 1F1B, Interleaved1F1B, ZBH1 (InterleavedZeroBubble), ZBV (ZBVZeroBubble), "
         "DualPipeV, auto";
}

const char* Name(ScheduleKind kind) {
  for (const Entry& entry : kEntries) {
    if (entry.schedule.kind == kind) return entry.name.data();
  }
  TROUPE_CHECK(false, "schedule kind {}", static_cast<int>(kind));
}

Status CheckShape(ScheduleKind kind, const PipelineShape& shape) {
  const auto wants_chunks = [&](int chunks) {
    if (shape.chunks_per_stage == chunks) return OkStatus();
    return InvalidArgument("{} has {} {} per stage, must have {}", Name(kind), chunks,
                           chunks == 1 ? "chunk" : "chunks", shape.chunks_per_stage);
  };
  switch (kind) {
    case ScheduleKind::kGPipe:
    case ScheduleKind::k1F1B:
      return wants_chunks(1);
    case ScheduleKind::kInterleaved1F1B:
    case ScheduleKind::kZeroBubbleH1: {
      if (InterleavedOrder::HoldsFor(shape)) return OkStatus();
      const int rounds = std::max(1, shape.microbatches / shape.stages);
      return InvalidArgument(
          "{} with {} chunks per stage needs microbatches that floor(microbatches / stages) "
          "divides: {} mod floor({} / {}) = {} mod {} = {}, not 0",
          Name(kind), shape.chunks_per_stage, shape.microbatches, shape.microbatches, shape.stages,
          shape.microbatches, rounds, shape.microbatches % rounds);
    }
    case ScheduleKind::kZeroBubbleV:
      return wants_chunks(2);
    case ScheduleKind::kDualPipeV:
      TROUPE_RETURN_IF_ERROR(wants_chunks(2));
      if (shape.microbatches >= 2 * shape.stages) return OkStatus();
      return InvalidArgument("{} needs microbatches >= 2 × stages: {} is below 2 × {} = {}",
                             Name(kind), shape.microbatches, shape.stages, 2 * shape.stages);
  }
  return InvalidArgument("unknown schedule");
}

Status CheckAnyShape(const PipelineShape& shape) {
  std::string reasons;
  for (const ScheduleKind kind : kScheduleKinds) {
    const Status fits = CheckShape(kind, shape);
    if (fits.ok()) return fits;
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", Message(fits));
  }
  return InvalidArgument("{}", reasons);
}

Schedule MakeSchedule(ScheduleKind kind, const PipelineShape& shape) {
  TROUPE_CHECK_OK(CheckShape(kind, shape));
  switch (kind) {
    case ScheduleKind::kGPipe:
      return GPipe(shape.stages, shape.microbatches);
    case ScheduleKind::k1F1B:
      return OneForwardOneBackward(shape.stages, shape.microbatches);
    case ScheduleKind::kInterleaved1F1B:
      return Interleaved1F1B(shape);
    case ScheduleKind::kZeroBubbleH1:
      return ZeroBubbleH1(shape);
    case ScheduleKind::kZeroBubbleV:
      return ZeroBubbleV(shape.stages, shape.microbatches);
    case ScheduleKind::kDualPipeV:
      return DualPipeV(shape.stages, shape.microbatches);
  }
  TROUPE_CHECK(false, "schedule kind {}", static_cast<int>(kind));
}

}  // namespace troupe
