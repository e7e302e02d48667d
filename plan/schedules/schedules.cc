#include "plan/schedules/schedules.h"

#include <iterator>

#include "base/check.h"
#include "plan/schedules/schedule_record.h"

namespace troupe {
namespace {

#define TROUPE_SCHEDULE(kind, record) &record,
constexpr const ScheduleRecord* kRecords[] = {
#include "plan/schedules/schedule_kinds.def"
};
#undef TROUPE_SCHEDULE

const ScheduleRecord& RecordOf(ScheduleKind kind) {
  const auto index = static_cast<size_t>(kind);
  TROUPE_CHECK(index < std::size(kRecords), "schedule kind {}", index);
  return *kRecords[index];
}

}  // namespace

std::optional<NamedSchedule> FindSchedule(std::string_view name) {
  for (const ScheduleKind kind : kScheduleKinds) {
    const ScheduleRecord& record = RecordOf(kind);
    if (name == record.name) return NamedSchedule{kind, record.default_chunks_per_stage};
    if (record.alias != nullptr && name == record.alias) {
      return NamedSchedule{kind, record.alias_chunks_per_stage};
    }
  }
  return std::nullopt;
}

std::string KnownSchedules() {
  std::string names;
  for (const ScheduleRecord* record : kRecords) {
    names += record->name;
    if (record->alias != nullptr) names += fmt::format(" ({})", record->alias);
    names += ", ";
  }
  return names.append(kAutoSchedule);
}

const char* Name(ScheduleKind kind) { return RecordOf(kind).name; }

Status CheckShape(ScheduleKind kind, const PipelineShape& shape) {
  const ScheduleRecord& record = RecordOf(kind);
  const int chunks = record.default_chunks_per_stage;
  if (record.has_only_default_chunks && shape.chunks_per_stage != chunks) {
    return InvalidArgument("{} needs {} {} per stage, not {}", record.name, chunks,
                           chunks == 1 ? "chunk" : "chunks", shape.chunks_per_stage);
  }
  if (record.check == nullptr) return OkStatus();
  const Status fits = record.check(shape);
  return fits.ok() ? fits : InvalidArgument("{} {}", record.name, Message(fits));
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

std::vector<std::vector<int>> ChunksByRank(ScheduleKind kind, const PipelineShape& shape) {
  return RecordOf(kind).chunks(shape);
}

bool SplitsBackward(ScheduleKind kind) { return RecordOf(kind).splits_backward; }

int LeastLiveMicrobatches(ScheduleKind kind, const PipelineShape& shape, int rank) {
  const ScheduleRecord& record = RecordOf(kind);
  return record.least_live_microbatches == nullptr ? 1
                                                   : record.least_live_microbatches(shape, rank);
}

Schedule MakeSchedule(ScheduleKind kind, const PipelineShape& shape) {
  TROUPE_CHECK_OK(CheckShape(kind, shape));
  const ScheduleRecord& record = RecordOf(kind);
  return {record.name, shape.microbatches, record.chunks(shape), record.actions(shape)};
}

}  // namespace troupe
