// The data settings in a job's spec.
#ifndef TROUPE_DATA_JOB_DATA_H_
#define TROUPE_DATA_JOB_DATA_H_

#include <string>
#include <vector>

#include "data/dataset.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Returns the dataset options of the spec. REQUIRES: the spec's defaults are filled in.
DatasetOptions MakeDatasetOptions(const v1::JobSpec& spec);

// Returns every path that Dataset::Open reads.
std::vector<std::string> DataPaths(const DatasetOptions& options);

}  // namespace troupe

#endif  // TROUPE_DATA_JOB_DATA_H_
