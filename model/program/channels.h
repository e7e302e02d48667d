// The channels of samples that a program reads, from its chunks' interfaces. Pure.
#ifndef TROUPE_MODEL_PROGRAM_CHANNELS_H_
#define TROUPE_MODEL_PROGRAM_CHANNELS_H_

#include <vector>

#include "base/sample_schema.h"
#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

// The form of the channel in `value`: its dtype, whether its first dim counts rows or samples, and
// the elements of one row or sample. INTERNAL if the value cannot hold a channel.
StatusOr<ChannelForm> FormOf(const std::string& channel, const Value& value);

// The channels that all chunks read, in the order of first use, without duplicates. INTERNAL if two
// chunks differ in the form of a channel.
StatusOr<std::vector<ChannelForm>> ChannelsRead(const Program& program);

// INTERNAL unless each chunk reads only channels of `schema`, each once, in the schema's form and
// on a stage that the schema allows.
Status CheckChannels(const Program& program, const SampleSchema& schema);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_CHANNELS_H_
