#include "worker/executor/chunk_inputs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/program/channels.h"
#include "worker/executor/sample_rows.h"

namespace troupe {

using model::Axis;

StatusOr<std::vector<BoundChannel>> BindChannels(const SampleSchema& schema,
                                                 std::span<const ChannelForm> given,
                                                 const model::Program& program,
                                                 const model::ChunkInterface& chunk) {
  const bool shares_samples = program.mesh.degrees[Axis::kContext] > 1;
  std::vector<BoundChannel> bound;
  for (const model::ChannelInput& read : chunk.channels) {
    TROUPE_ASSIGN_OR_RETURN(const ChannelForm form,
                            model::FormOf(read.channel, program.value(read.value)));
    const Channel* const channel = schema.Find(form.name);
    if (channel == nullptr) {
      return InvalidArgument("chunk {} reads channel {}, which sample schema {} does not know",
                             chunk.chunk, ToText(form), schema.version());
    }
    if (channel->form != form) {
      return InvalidArgument("chunk {} reads channel {}, but in sample schema {} it is {}",
                             chunk.chunk, ToText(form), schema.version(), ToText(channel->form));
    }
    using Fill = BoundChannel::Fill;
    if (channel->source == ChannelSource::kSlot) {
      bound.push_back({form, read.value, Fill::kSlot});
      continue;
    }
    const ChannelForm* const there = FindForm(given, form.name);
    if (there == nullptr && channel->source == ChannelSource::kDataOrPlace) {
      bound.push_back({form, read.value, Fill::kPlace});
      continue;
    }
    if (there == nullptr) {
      return InvalidArgument(
          "chunk {} reads channel {} (sample schema {}, since {}), which the data does not "
          "provide; it provides {}",
          chunk.chunk, ToText(form), schema.version(), channel->since, ToText(given));
    }
    if (*there != form) {
      return InvalidArgument(
          "chunk {} reads channel {} (sample schema {}, since {}), but the data provides {}",
          chunk.chunk, ToText(form), schema.version(), channel->since, ToText(*there));
    }
    const bool whole =
        !shares_samples || channel->whole_samples || form.extent == ChannelExtent::kSample;
    bound.push_back({form, read.value, whole ? Fill::kWhole : Fill::kRows});
  }
  return bound;
}

StatusOr<ChunkInputs> ChunkInputs::Make(const SampleSchema& schema,
                                        std::span<const ChannelForm> given,
                                        const model::Program& program, const BatchGeometry& batch) {
  ChunkInputs inputs;
  inputs.batch_ = batch;
  for (const model::ChunkInterface& chunk : program.chunks) {
    TROUPE_ASSIGN_OR_RETURN(std::vector<BoundChannel> bound,
                            BindChannels(schema, given, program, chunk));
    for (const BoundChannel& channel : bound) {
      const bool of_data =
          channel.fill == BoundChannel::Fill::kRows || channel.fill == BoundChannel::Fill::kWhole;
      if (of_data && FindForm(inputs.rows_, channel.form.name) == nullptr) {
        inputs.rows_.push_back(channel.form);
      }
    }
    inputs.bound_.push_back(std::move(bound));
  }
  inputs.rows_of_samples_ = RowsOfContextRank(batch.micro_batch_size, batch.sequence_length,
                                              program.mesh.degrees[Axis::kContext],
                                              program.mesh.coordinates[Axis::kContext]);
  for (const int32_t row : inputs.rows_of_samples_) {
    inputs.places_.push_back(static_cast<int32_t>(row % batch.sequence_length));
  }
  inputs.slots_.resize(static_cast<size_t>(2 * batch.micro_batch_size));
  size_t picked = 0;
  for (const ChannelForm& form : inputs.rows_) {
    picked = std::max(picked, inputs.rows_of_samples_.size() *
                                  static_cast<size_t>(form.lanes * kChannelElementBytes));
  }
  inputs.picked_.resize(picked);
  return inputs;
}

Status ChunkInputs::Fill(int chunk_index, int buffer, const MicrobatchSamples& from,
                         kernels::ValueMemory& values) {
  for (const BoundChannel& channel : bound_[static_cast<size_t>(chunk_index)]) {
    TROUPE_RETURN_IF_ERROR(FillOne(channel, buffer, from, values));
  }
  return OkStatus();
}

Status ChunkInputs::FillOne(const BoundChannel& channel, int buffer, const MicrobatchSamples& from,
                            kernels::ValueMemory& values) {
  using Fill = BoundChannel::Fill;
  const auto write = [&](std::span<const std::byte> bytes) {
    return values.Write(channel.value, buffer, bytes);
  };
  if (channel.fill == Fill::kPlace) return write(std::as_bytes(std::span(places_)));
  if (channel.fill == Fill::kSlot) {
    NumberSamples(from.step, from.first_slot, slots_);
    return write(std::as_bytes(std::span(slots_)));
  }
  const int64_t of_sample = channel.form.elements(batch_.sequence_length) * kChannelElementBytes;
  const auto samples = from.batch->Bytes(channel.form.name)
                           .subspan(static_cast<size_t>(from.first_sample * of_sample),
                                    static_cast<size_t>(batch_.micro_batch_size * of_sample));
  if (channel.fill == Fill::kWhole) return write(samples);
  const size_t width = static_cast<size_t>(channel.form.lanes * kChannelElementBytes);
  std::byte* to = picked_.data();
  for (const int32_t row : rows_of_samples_) {
    std::memcpy(to, samples.data() + static_cast<size_t>(row) * width, width);
    to += width;
  }
  return write(std::span(picked_).first(rows_of_samples_.size() * width));
}

}  // namespace troupe
