// What a plan or manifest records of the channels of samples (base/sample_schema.h) that were read, and
// whether a build can go on from it.
#ifndef TROUPE_CHECKPOINT_SAMPLE_CHANNELS_H_
#define TROUPE_CHECKPOINT_SAMPLE_CHANNELS_H_

#include "base/sample_schema.h"
#include "base/status.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// The version that was recorded; 1 where none was.
int SampleSchemaVersion(const v1::SampleChannels& recorded);

// INVALID_ARGUMENT naming the value unless the record is one that could have been made, by this build
// or a later one: bounded numbers, names that are names, no channel twice.
Status ValidateSampleChannels(const v1::SampleChannels& recorded);

// FAILED_PRECONDITION naming the channel, its form and both versions where the record has a channel that
// `schema` does not know, or knows in another form. A record of another version is as good, newer or
// older, as long as its channels are known; so is one without channels. REQUIRES: a valid record.
Status CheckSampleChannels(const v1::SampleChannels& recorded, const SampleSchema& schema);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_SAMPLE_CHANNELS_H_
