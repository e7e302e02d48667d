// The data of a job: what its spec says of it, and whether the files hold that.
#ifndef TROUPE_DATA_JOB_DATA_H_
#define TROUPE_DATA_JOB_DATA_H_

#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "data/dataset.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// REQUIRES: the spec's defaults are filled in.
DatasetOptions MakeDatasetOptions(const v1::JobSpec& spec);

// The key of the job file that is to blame where Dataset::Open refuses `options`: data.train or
// data.validation where its files cannot be read, training.sequence_length where they are too short.
std::string FieldToBlame(FileSystem& files, const DatasetOptions& options);

}  // namespace troupe

#endif  // TROUPE_DATA_JOB_DATA_H_
