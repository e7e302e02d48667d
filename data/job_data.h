// The data of a job: what its spec says of it, and whether the files hold that.
#ifndef TROUPE_DATA_JOB_DATA_H_
#define TROUPE_DATA_JOB_DATA_H_

#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "data/dataset.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// REQUIRES: the spec's defaults are filled in.
DatasetOptions MakeDatasetOptions(const v1::JobSpec& spec);

// Every path that Dataset::Open reads.
std::vector<std::string> DataPaths(const DatasetOptions& options);

// The key of the job file that is to blame where Dataset::Open refuses `options`: data.train,
// data.blend[i].path or data.validation where its files cannot be read, model.vocab_size where it is
// below that of a dataset's tokenizer, training.sequence_length where the data are too short.
std::string FieldToBlame(FileSystem& files, const DatasetOptions& options);

}  // namespace troupe

#endif  // TROUPE_DATA_JOB_DATA_H_
