// The data settings in a job's spec, and the job key to name when its files do not match them.
#ifndef TROUPE_DATA_JOB_DATA_H_
#define TROUPE_DATA_JOB_DATA_H_

#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "data/dataset.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Returns the dataset options of the spec. REQUIRES: the spec's defaults are filled in.
DatasetOptions MakeDatasetOptions(const v1::JobSpec& spec);

// Returns every path that Dataset::Open reads.
std::vector<std::string> DataPaths(const DatasetOptions& options);

// Returns the job key that causes Dataset::Open to refuse `options`: data.train, data.blend[i].path
// or data.validation if its files cannot be read; model.vocab_size if it is below that of a
// dataset's tokenizer; training.sequence_length if the data are too short.
std::string FieldToBlame(FileSystem& files, const DatasetOptions& options);

}  // namespace troupe

#endif  // TROUPE_DATA_JOB_DATA_H_
