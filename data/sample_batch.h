// Samples of some channels; each channel is one contiguous array, sample by sample.
#ifndef TROUPE_DATA_SAMPLE_BATCH_H_
#define TROUPE_DATA_SAMPLE_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/sample_schema.h"
#include "data/sample_row.h"

namespace troupe {

class SampleBatch {
 public:
  SampleBatch() = default;
  // Creates `samples` samples of `tokens` tokens, all 0.
  SampleBatch(std::span<const ChannelForm> channels, int64_t samples, int64_t tokens);

  int64_t samples() const { return samples_; }
  // Returns a row to fill. REQUIRES: the batch outlives it.
  SampleRow Row(int64_t sample);

  // Returns all samples of a channel, or an empty span if the batch lacks it. REQUIRES: the channel
  // has that type.
  std::span<const int32_t> Int32s(std::string_view channel) const;
  std::span<const float> Float32s(std::string_view channel) const;
  // The same for a channel of either type.
  std::span<const std::byte> Bytes(std::string_view channel) const;

 private:
  struct Column {
    ChannelForm form;
    std::variant<std::vector<int32_t>, std::vector<float>> values;
  };

  const Column* Find(std::string_view channel) const;

  std::vector<Column> columns_;
  int64_t samples_ = 0;
  int64_t tokens_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_DATA_SAMPLE_BATCH_H_
