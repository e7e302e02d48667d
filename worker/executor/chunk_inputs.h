// The inputs that a rank's chunks read from samples: binds them to the channels of the data by the
// schema of channels (base/sample_schema.h) and writes them into the program's values, one
// microbatch at a time.
//
// Not thread-safe: one thread calls Fill.
#ifndef TROUPE_WORKER_EXECUTOR_CHUNK_INPUTS_H_
#define TROUPE_WORKER_EXECUTOR_CHUNK_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/sample_schema.h"
#include "base/status.h"
#include "data/sample_batch.h"
#include "kernels/backend/value_memory.h"
#include "model/program/program.h"
#include "plan/validate/batch.h"

namespace troupe {

// One input of a chunk and the source of its contents.
struct BoundChannel {
  enum class Fill : uint8_t {
    kRows,   // this rank's tokens of the data's rows
    kWhole,  // the data's rows, unchanged
    kPlace,  // the position of each token in its sample
    kSlot,   // {step, slot} of each sample
  };
  ChannelForm form;
  model::ValueId value = model::kNoValue;
  Fill fill = Fill::kRows;
};

// Returns the inputs of `chunk` of `program`, in its order; `given` are the channels that the data
// provide. Returns INVALID_ARGUMENT, which names the channel, its form and the version of the
// schema, if the chunk reads a channel that the schema does not know or the data do not provide, or
// if program, schema and data disagree on its form. Pure.
StatusOr<std::vector<BoundChannel>> BindChannels(const SampleSchema& schema,
                                                 std::span<const ChannelForm> given,
                                                 const model::Program& program,
                                                 const model::ChunkInterface& chunk);

// The source of the inputs of one microbatch.
struct MicrobatchSamples {
  const SampleBatch* batch = nullptr;  // has the channels rows(); may be null if rows() is empty
  int64_t first_sample = 0;            // index in the batch of the microbatch's first sample
  int64_t step = 0;                    // 0: an evaluation
  int64_t first_slot = 0;              // slot of first_sample
};

class ChunkInputs {
 public:
  // Fills nothing.
  ChunkInputs() = default;
  // Returns the errors of BindChannels. `program` outlives the inputs.
  static StatusOr<ChunkInputs> Make(const SampleSchema& schema, std::span<const ChannelForm> given,
                                    const model::Program& program, const BatchGeometry& batch);

  // The channels that batches must contain: those of the data that some chunk reads.
  const std::vector<ChannelForm>& rows() const { return rows_; }

  // Writes the inputs of a chunk into buffer `buffer`. Returns errors of Executable::Write.
  Status Fill(int chunk_index, int buffer, const MicrobatchSamples& from,
              kernels::ValueMemory& values);

 private:
  Status FillOne(const BoundChannel& channel, int buffer, const MicrobatchSamples& from,
                 kernels::ValueMemory& values);

  BatchGeometry batch_;
  std::vector<std::vector<BoundChannel>> bound_;  // [chunk index]
  std::vector<ChannelForm> rows_;
  // For each row of a microbatch on this rank, its index among the rows of whole samples. Context
  // ranks share samples.
  std::vector<int32_t> rows_of_samples_;
  std::vector<int32_t> places_;    // position of each of those rows in its sample
  std::vector<int32_t> slots_;     // step and slot of each sample of one microbatch
  std::vector<std::byte> picked_;  // those rows of one channel
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_CHUNK_INPUTS_H_
