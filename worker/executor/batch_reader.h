// Reads the rows of one data rank ahead of its steps: while step s computes, a thread reads s + 1.
//
// Rows are a pure function of (seed, step, slot), so reading ahead has nothing to undo. Take
// belongs to one thread.
#ifndef TROUPE_WORKER_EXECUTOR_BATCH_READER_H_
#define TROUPE_WORKER_EXECUTOR_BATCH_READER_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "base/status.h"
#include "data/dataset.h"
#include "data/sample_batch.h"

namespace troupe {

class BatchReader {
 public:
  // Of slots [first_slot, first_slot + samples) of each step the channels `channels`, which the
  // dataset gives. `dataset` outlives the reader.
  BatchReader(const Dataset& dataset, std::span<const ChannelForm> channels, int64_t sequence_length,
              int64_t first_slot, int64_t samples);
  // Waits for the read under way.
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // The batch of `step`, valid until the next Take; begins to read step + 1. The dataset's error is
  // returned for the step that it belongs to.
  StatusOr<const SampleBatch*> Take(int64_t step);

 private:
  struct Slot {
    int64_t step = 0;  // 0: none
    Status status;
    SampleBatch batch;
  };

  void Run();
  void Read(int64_t step, Slot* slot);

  const Dataset& dataset_;
  const int64_t first_slot_;
  Slot current_;  // Take's
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t wanted_ = 0;  // the step to read ahead; 0: nothing
  bool stopping_ = false;
  Slot ahead_;  // the thread's while wanted_ != 0, Take's otherwise
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_BATCH_READER_H_
