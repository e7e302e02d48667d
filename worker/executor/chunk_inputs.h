// What a rank's chunks read of samples, bound to what the data give by the schema of channels
// (base/sample_schema.h), and written into the program's values microbatch by microbatch.
//
// Not thread-safe: one thread fills.
#ifndef TROUPE_WORKER_EXECUTOR_CHUNK_INPUTS_H_
#define TROUPE_WORKER_EXECUTOR_CHUNK_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/sample_schema.h"
#include "base/status.h"
#include "data/sample_batch.h"
#include "kernels/backend.h"
#include "model/program/program.h"
#include "plan/batch.h"

namespace troupe {

// One input of a chunk and what fills it.
struct BoundChannel {
  enum class Fill : uint8_t {
    kRows,   // this rank's tokens of the data's rows
    kWhole,  // the data's rows as they are
    kPlace,  // each token's place in its sample
    kSlot,   // {step, slot} of each sample
  };
  ChannelForm form;
  model::ValueId value = model::kNoValue;
  Fill fill = Fill::kRows;
};

// The inputs of `chunk` of `program`, in its order, where the data give `given`. INVALID_ARGUMENT naming
// the channel, its form and the version of the schema where the chunk reads what the schema does not know
// or the data do not give, or where program, schema and data differ in its form. Pure.
StatusOr<std::vector<BoundChannel>> BindChannels(const SampleSchema& schema,
                                                 std::span<const ChannelForm> given,
                                                 const model::Program& program,
                                                 const model::ChunkInterface& chunk);

// Where the inputs of one microbatch come from.
struct MicrobatchSamples {
  const SampleBatch* batch = nullptr;  // of rows(); may be null where that is empty
  int64_t first_sample = 0;            // of the microbatch, in the batch
  int64_t step = 0;                    // 0: an evaluation
  int64_t first_slot = 0;              // of that sample
};

class ChunkInputs {
 public:
  // Nothing to fill.
  ChunkInputs() = default;
  // Errors of BindChannels. `program` outlives the inputs.
  static StatusOr<ChunkInputs> Make(const SampleSchema& schema, std::span<const ChannelForm> given,
                                    const model::Program& program, const BatchGeometry& batch);

  // What batches must hold: the channels of the data that some chunk reads.
  const std::vector<ChannelForm>& rows() const { return rows_; }

  // Writes the inputs of a chunk into buffer `buffer`. Errors of Executable::Write.
  Status Fill(int chunk_index, int buffer, const MicrobatchSamples& from,
              kernels::Executable& executable);

 private:
  Status FillOne(const BoundChannel& channel, int buffer, const MicrobatchSamples& from,
                 kernels::Executable& executable);

  BatchGeometry batch_;
  std::vector<std::vector<BoundChannel>> bound_;  // [chunk index]
  std::vector<ChannelForm> rows_;
  // Of each of this rank's rows of a microbatch, its row among those of whole samples: context ranks
  // share samples.
  std::vector<int32_t> rows_of_samples_;
  std::vector<int32_t> places_;    // of those rows in their samples
  std::vector<int32_t> slots_;     // step and slot of each sample of one microbatch
  std::vector<std::byte> picked_;  // those rows of one channel
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_CHUNK_INPUTS_H_
