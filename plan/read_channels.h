// What a plan says of the channels of samples (base/sample_schema.h) that its programs read. Pure.
#ifndef TROUPE_PLAN_READ_CHANNELS_H_
#define TROUPE_PLAN_READ_CHANNELS_H_

#include <span>
#include <string>
#include <vector>

#include "base/sample_schema.h"
#include "base/status.h"
#include "model/program/program.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// The channels that the programs of a job read, collected stage by stage.
class ReadChannels {
 public:
  explicit ReadChannels(SampleSchema schema) : schema_(std::move(schema)) {}

  // What the chunks of one stage read. INTERNAL where that is nothing that the schema has in that form.
  Status Add(const model::Program& program);

  // Of all stages, in the schema's order. INTERNAL where none reads what the schema requires.
  StatusOr<v1::SampleChannels> ToProto() const;

 private:
  SampleSchema schema_;
  std::vector<ChannelForm> read_;
};

// "schema 1: tokens i32 a token, targets i32 a token".
std::string ToText(const v1::SampleChannels& samples);

}  // namespace troupe

#endif  // TROUPE_PLAN_READ_CHANNELS_H_
