// The record in a plan or manifest of the sample channels (base/sample_schema.h) that were read,
// and the check that a build can continue from it.
#ifndef TROUPE_CHECKPOINT_FORMAT_SAMPLE_CHANNELS_H_
#define TROUPE_CHECKPOINT_FORMAT_SAMPLE_CHANNELS_H_

#include "base/sample_schema.h"
#include "base/status.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Returns the recorded version, or 1 if none was recorded.
int SampleSchemaVersion(const v1::SampleChannels& recorded);

// INVALID_ARGUMENT names the value unless this build or a later one could have made the record:
// numbers are bounded, names are valid, no channel appears twice.
Status ValidateSampleChannels(const v1::SampleChannels& recorded);

// FAILED_PRECONDITION names the channel, its form and both versions if `schema` does not know a
// recorded channel, or knows it in another form. The record may be of an older or newer version as
// long as its channels are known, and it may have no channels. REQUIRES: a valid record.
Status CheckSampleChannels(const v1::SampleChannels& recorded, const SampleSchema& schema);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_FORMAT_SAMPLE_CHANNELS_H_
