// Prefetches the rows of one data rank: while step s computes, a thread reads step s + 1.
//
// Rows are a pure function of (seed, step, slot), so a prefetch never has to be undone. Only one
// thread may call Consume.
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
  // Reads the channels `channels`, which the dataset must provide, of slots [first_slot, first_slot
  // + samples) of each step. `dataset` outlives the reader.
  BatchReader(const Dataset& dataset, std::span<const ChannelForm> channels,
              int64_t sequence_length, int64_t first_slot, int64_t samples);
  // Waits for the read in flight.
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // Returns the batch of `step`, valid until the next Consume, and starts to read step + 1. An
  // error of the dataset is returned by the Consume of the step that it belongs to.
  StatusOr<const SampleBatch*> Consume(int64_t step);

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
  Slot current_;  // used by Consume alone
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t wanted_ = 0;  // the step to prefetch; 0: none
  bool stopping_ = false;
  Slot ahead_;  // owned by the thread while wanted_ != 0, else by Consume
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_BATCH_READER_H_
