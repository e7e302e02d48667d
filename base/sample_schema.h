// The interface between data and model: a versioned list of named, typed channels.
//
// A sample is a row of tokens with the values that belong to them. Data sources declare the
// channels that their rows provide (data/dataset.h), and chunks of a program the channels that they
// read (model/program/program.h). A rank binds one to the other (worker/executor/chunk_inputs.h),
// and plans and checkpoints record the channels that were read (plan/validate/read_channels.h,
// checkpoint/format/sample_channels.h).
//
// A channel never changes its meaning or form: a different meaning is a different channel of a
// later version. Every later build can therefore read an older checkpoint, and a build refuses, by
// name, a checkpoint with a channel that it does not know.
//
// Immutable, thread-safe.
#ifndef TROUPE_BASE_SAMPLE_SCHEMA_H_
#define TROUPE_BASE_SAMPLE_SCHEMA_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

enum class ChannelType : uint8_t { kInt32, kFloat32 };
inline constexpr int64_t kChannelElementBytes = 4;  // for both types
const char* Name(ChannelType type);                 // "i32" "f32"

// The unit for which a channel has one group of elements.
enum class ChannelExtent : uint8_t { kToken, kSample };
const char* Name(ChannelExtent extent);  // "token" "sample"

// The memory layout of a channel: `lanes` elements of `type` for each token or sample, contiguous.
struct ChannelForm {
  std::string name;
  ChannelType type = ChannelType::kInt32;
  ChannelExtent extent = ChannelExtent::kToken;
  int64_t lanes = 1;
  bool operator==(const ChannelForm&) const = default;

  // Returns the number of elements in one sample of `tokens` tokens.
  int64_t elements(int64_t tokens) const {
    return extent == ChannelExtent::kToken ? tokens * lanes : lanes;
  }
};
// Returns a text such as "tokens i32 a token" or "x f32[64] a token".
std::string ToText(const ChannelForm& form);
// Comma-separated; "nothing" if empty.
std::string ToText(std::span<const ChannelForm> forms);
const ChannelForm* FindForm(std::span<const ChannelForm> forms, std::string_view name);

enum class ChannelSource : uint8_t {
  kData,         // from the rows of the data
  kDataOrPlace,  // from the rows of the data, or else the token's position in its sample
  kSlot,         // {step, slot} of the sample; step is 0 in an evaluation
};
const char* Name(ChannelSource source);  // "data" "data or place" "slot"

enum class ChannelReader : uint8_t { kFirstStage, kLastStage, kAnyStage };
const char* Name(ChannelReader reader);  // "first stage" …

struct Channel {
  ChannelForm form;
  ChannelSource source = ChannelSource::kData;
  ChannelReader reader = ChannelReader::kAnyStage;
  // Each rank of `context` receives whole samples, else only its own tokens.
  bool whole_samples = false;
  bool required = false;  // every program reads it on some stage
  int since = 1;          // first schema version that has it
};

// The channels of version 1.
namespace channels {
inline constexpr std::string_view kTokens = "tokens";
inline constexpr std::string_view kTargets = "targets";  // tokens shifted by one
inline constexpr std::string_view kWeights = "weights";  // weights of the targets in the loss
// The position of the token in its document, or else in the sample.
inline constexpr std::string_view kPositions = "positions";
// The offset in the sample at which the token's document begins.
inline constexpr std::string_view kDocuments = "documents";
// {step, slot}: the coordinates of dropout's random numbers.
inline constexpr std::string_view kSlots = "slots";
}  // namespace channels

class SampleSchema {
 public:
  // Limits on the schema that a manifest may state, so that an untrusted manifest stays small.
  static constexpr int kChannelsMax = 64;
  static constexpr int64_t kLanesMax = 1 << 20;

  // INVALID_ARGUMENT names the channel for: an invalid or repeated name, lanes not in [1,
  // kLanesMax], a version below 1, or a form other than i32 per token for kDataOrPlace and i32[2]
  // per sample for kSlot. INVALID_ARGUMENT also for more than kChannelsMax channels.
  static StatusOr<SampleSchema> Make(std::vector<Channel> channels);

  // Returns the highest version among the channels.
  int version() const { return version_; }
  const std::vector<Channel>& channels() const { return channels_; }
  const Channel* Find(std::string_view name) const;

 private:
  explicit SampleSchema(std::vector<Channel> channels);

  std::vector<Channel> channels_;
  int version_ = 1;
};

// Returns the schema of this build. To add a channel, add one entry here with the next version, the
// block that reads it, and the data that provide it.
SampleSchema CurrentSampleSchema();

// Returns whether `name` consists of 1 to 64 characters from a-z, 0-9 and _.
bool IsChannelName(std::string_view name);

// Returns a stable text with one line per channel.
std::string ToText(const SampleSchema& schema);

}  // namespace troupe

#endif  // TROUPE_BASE_SAMPLE_SCHEMA_H_
