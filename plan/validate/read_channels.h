// The sample channels (base/sample_schema.h) that a plan's programs read. Pure.
#ifndef TROUPE_PLAN_VALIDATE_READ_CHANNELS_H_
#define TROUPE_PLAN_VALIDATE_READ_CHANNELS_H_

#include <span>
#include <string>
#include <vector>

#include "base/sample_schema.h"
#include "base/status.h"
#include "model/program/program.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Collects the channels that the programs of a job read, stage by stage.
class ReadChannels {
 public:
  explicit ReadChannels(SampleSchema schema) : schema_(std::move(schema)) {}

  // Adds the channels that the chunks of one stage read. INTERNAL where the schema has no channel
  // of that name and form.
  Status Add(const model::Program& program);

  // The channels of all stages, in the schema's order. INTERNAL where no stage reads a channel that
  // the schema requires.
  StatusOr<v1::SampleChannels> ToProto() const;

 private:
  SampleSchema schema_;
  std::vector<ChannelForm> read_;
};

// "schema 1: tokens i32 a token, targets i32 a token".
std::string ToText(const v1::SampleChannels& samples);

}  // namespace troupe

#endif  // TROUPE_PLAN_VALIDATE_READ_CHANNELS_H_
