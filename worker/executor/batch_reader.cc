#include "worker/executor/batch_reader.h"

#include <span>
#include <utility>

#include "worker/executor/failure_cause.h"

namespace troupe {

void Batch::Resize(int64_t rows, int64_t sequence_length) {
  const size_t size = static_cast<size_t>(rows * sequence_length);
  tokens.resize(size);
  targets.resize(size);
  weights.resize(size);
  positions.resize(size);
  documents.resize(size);
}

SampleRow Batch::Row(int64_t row, int64_t sequence_length) {
  const size_t begin = static_cast<size_t>(row * sequence_length);
  const size_t length = static_cast<size_t>(sequence_length);
  return {std::span(tokens).subspan(begin, length), std::span(targets).subspan(begin, length),
          std::span(weights).subspan(begin, length), std::span(positions).subspan(begin, length),
          std::span(documents).subspan(begin, length)};
}

BatchReader::BatchReader(const Dataset& dataset, int64_t sequence_length, int64_t first_slot,
                         int64_t rows)
    : dataset_(dataset), sequence_length_(sequence_length), first_slot_(first_slot), rows_(rows) {
  current_.batch.Resize(rows, sequence_length);
  ahead_.batch.Resize(rows, sequence_length);
  thread_ = std::thread([this] { Run(); });
}

BatchReader::~BatchReader() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

StatusOr<const Batch*> BatchReader::Take(int64_t step) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return wanted_ == 0; });
    std::swap(current_, ahead_);
  }
  if (current_.step != step) Read(step, &current_);
  TROUPE_RETURN_IF_ERROR(WithCause(current_.status, kCauseData));
  {
    std::lock_guard lock(mutex_);
    wanted_ = step + 1;
  }
  changed_.notify_all();
  return &current_.batch;
}

void BatchReader::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return wanted_ != 0 || stopping_; });
    if (stopping_) return;
    const int64_t step = wanted_;
    lock.unlock();
    Read(step, &ahead_);
    lock.lock();
    wanted_ = 0;
    changed_.notify_all();
  }
}

void BatchReader::Read(int64_t step, Slot* slot) {
  slot->step = step;
  slot->status = OkStatus();
  for (int64_t row = 0; row < rows_ && slot->status.ok(); ++row) {
    slot->status = dataset_.Train(step, first_slot_ + row, slot->batch.Row(row, sequence_length_));
  }
}

}  // namespace troupe
