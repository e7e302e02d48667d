// What crosses the boundary between data and model: a versioned list of named, typed channels.
//
// A sample is a row of tokens with what belongs to them. Data sources say which channels their rows
// give (data/dataset.h), chunks of a program which ones they read (model/program/program.h), a rank
// binds the one to the other (worker/executor/chunk_inputs.h), and plans and checkpoints record what
// was read (plan/read_channels.h, checkpoint/sample_channels.h).
//
// A channel never changes its meaning or form: another meaning is another channel, of a later
// version. So an older checkpoint is read by every later build, and one that needs what a build does
// not know is refused by the channel's name.
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
inline constexpr int64_t kChannelElementBytes = 4;  // of either type
const char* Name(ChannelType type);                 // "i32" "f32"

// What there is one group of elements for.
enum class ChannelExtent : uint8_t { kToken, kSample };
const char* Name(ChannelExtent extent);  // "token" "sample"

// How a channel's elements lie in memory: `lanes` elements of `type` for each token or sample, one
// after the other.
struct ChannelForm {
  std::string name;
  ChannelType type = ChannelType::kInt32;
  ChannelExtent extent = ChannelExtent::kToken;
  int64_t lanes = 1;
  bool operator==(const ChannelForm&) const = default;

  // Of one sample of `tokens` tokens.
  int64_t elements(int64_t tokens) const { return extent == ChannelExtent::kToken ? tokens * lanes : lanes; }
};
std::string ToText(const ChannelForm& form);                    // "tokens i32 a token", "x f32[64] a token"
std::string ToText(std::span<const ChannelForm> forms);         // with commas between; "nothing"
const ChannelForm* FindForm(std::span<const ChannelForm> forms, std::string_view name);

enum class ChannelSource : uint8_t {
  kData,         // rows of the data
  kDataOrPlace,  // rows of the data, or, where they do not have it, the token's place in its sample
  kSlot,         // {step, slot} of the sample, step 0 in an evaluation
};
const char* Name(ChannelSource source);  // "data" "data or place" "slot"

enum class ChannelReader : uint8_t { kFirstStage, kLastStage, kAnyStage };
const char* Name(ChannelReader reader);  // "first stage" …

struct Channel {
  ChannelForm form;
  ChannelSource source = ChannelSource::kData;
  ChannelReader reader = ChannelReader::kAnyStage;
  bool whole_samples = false;  // each rank of `context` is given whole samples, else its own tokens
  bool required = false;       // every program reads it on some stage
  int since = 1;               // version of the schema
};

// The channels of version 1.
namespace channels {
inline constexpr std::string_view kTokens = "tokens";
inline constexpr std::string_view kTargets = "targets";      // tokens shifted by one
inline constexpr std::string_view kWeights = "weights";      // of the target in the loss
inline constexpr std::string_view kPositions = "positions";  // of the token in its document, else in the sample
inline constexpr std::string_view kDocuments = "documents";  // where in the sample the token's document begins
inline constexpr std::string_view kSlots = "slots";          // {step, slot}: what dropout draws by
}  // namespace channels

class SampleSchema {
 public:
  // What a manifest may name, so that one of anybody stays small.
  static constexpr int kChannelsMax = 64;
  static constexpr int64_t kLanesMax = 1 << 20;

  // INVALID_ARGUMENT names the channel: a name that is none or there twice, lanes not in
  // [1, kLanesMax], a version below 1; more than kChannelsMax channels; a place or slot of another form
  // than i32 a token and i32[2] a sample.
  static StatusOr<SampleSchema> Make(std::vector<Channel> channels);

  // The highest version of a channel.
  int version() const { return version_; }
  const std::vector<Channel>& channels() const { return channels_; }
  const Channel* Find(std::string_view name) const;

 private:
  explicit SampleSchema(std::vector<Channel> channels);

  std::vector<Channel> channels_;
  int version_ = 1;
};

// That of this build. To add a channel: one entry here with the next version, the block that reads
// it, the data that give it.
SampleSchema CurrentSampleSchema();

// 1 to 64 of a-z, 0-9 and _.
bool IsChannelName(std::string_view name);

// One line a channel, stable.
std::string ToText(const SampleSchema& schema);

}  // namespace troupe

#endif  // TROUPE_BASE_SAMPLE_SCHEMA_H_
