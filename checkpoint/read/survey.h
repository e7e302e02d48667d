// Finds the checkpoints in a folder from its directories alone, so that a lost catalog can be
// rebuilt.
#ifndef TROUPE_CHECKPOINT_READ_SURVEY_H_
#define TROUPE_CHECKPOINT_READ_SURVEY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

// One job, the newest of its name.
struct SurveyedJob {
  std::string id;
  std::string spec_json;  // from its newest checkpoint
  std::string folder;     // the folder that contains the job's directory
  int64_t create_wall_time_ns = 0;
  // Sorted by attempt. COMMITTED if every byte matches the manifest, else QUARANTINED with the
  // reason. All are pinned, because the directories do not record which ones were.
  std::vector<v1::CheckpointRecord> checkpoints;
};

struct LeftOut {
  std::string path;
  std::string reason;
};

struct Survey {
  std::vector<SurveyedJob> jobs;  // sorted by id
  std::vector<LeftOut> left_out;  // sorted by path
};

// Surveys `folder`, which is a job's directory or contains such directories, one level deep. Reads
// every byte of every checkpoint. Attempts without a readable manifest are left out with the
// reason, as are those of earlier jobs of the same name, which the creation time of the job
// identifies. NOT_FOUND if there is no such folder. REQUIRES: `folder` is absolute.
StatusOr<Survey> SurveyCheckpoints(FileSystem& files, const std::string& folder);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_READ_SURVEY_H_
