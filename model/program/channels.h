// The channels of samples that a program reads, as its chunks' interfaces have them. Pure.
#ifndef TROUPE_MODEL_PROGRAM_CHANNELS_H_
#define TROUPE_MODEL_PROGRAM_CHANNELS_H_

#include <vector>

#include "base/sample_schema.h"
#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

// The form of the channel that `value` holds, as the value has it: its dtype, what its first dim is of
// (rows or samples), the elements of one. INTERNAL for a value that can hold none.
StatusOr<ChannelForm> FormOf(const std::string& channel, const Value& value);

// Of all chunks, in the order in which they read them first, each once. INTERNAL where two chunks
// differ in the form of one.
StatusOr<std::vector<ChannelForm>> ChannelsRead(const Program& program);

// INTERNAL unless each chunk reads channels of `schema` alone, each once, in the schema's form and from
// the stage that the schema admits.
Status CheckChannels(const Program& program, const SampleSchema& schema);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_CHANNELS_H_
