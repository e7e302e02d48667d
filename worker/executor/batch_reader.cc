#include "worker/executor/batch_reader.h"

#include <utility>

#include "base/failure_cause.h"

namespace troupe {

BatchReader::BatchReader(const Dataset& dataset, std::span<const ChannelForm> channels,
                         int64_t sequence_length, int64_t first_slot, int64_t samples)
    : dataset_(dataset), first_slot_(first_slot) {
  current_.batch = SampleBatch(channels, samples, sequence_length);
  ahead_.batch = SampleBatch(channels, samples, sequence_length);
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

StatusOr<const SampleBatch*> BatchReader::Consume(int64_t step) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return wanted_ == 0; });
    std::swap(current_, ahead_);
  }
  if (current_.step != step) Read(step, &current_);
  TROUPE_RETURN_IF_ERROR(WithCause(current_.status, cause::kData));
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
  for (int64_t sample = 0; sample < slot->batch.samples() && slot->status.ok(); ++sample) {
    slot->status = dataset_.Train(step, first_slot_ + sample, slot->batch.Row(sample));
  }
}

}  // namespace troupe
