// What lies in a checkpoint folder, by the directories alone: what a lost catalog can be made of
// again.
#ifndef TROUPE_CHECKPOINT_SURVEY_H_
#define TROUPE_CHECKPOINT_SURVEY_H_

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
  std::string spec_json;  // of its newest checkpoint
  std::string folder;     // that holds the job's directory
  int64_t create_wall_time_ns = 0;
  // By attempt; COMMITTED where every byte is what the manifest states, else QUARANTINED with the
  // reason. All pinned: which ones were is not in the directories.
  std::vector<v1::CheckpointRecord> checkpoints;
};

struct LeftOut {
  std::string path;
  std::string reason;
};

struct Survey {
  std::vector<SurveyedJob> jobs;  // by id
  std::vector<LeftOut> left_out;  // by path
};

// Looks at `folder`, which is a job's directory or holds such, one level deep; reads every byte of
// every checkpoint. Left out, with the reason: attempts without a manifest or with one that cannot
// be read, and those of earlier jobs of the same name, told by the time at which a job was created.
// NOT_FOUND if there is no such folder. REQUIRES: `folder` is absolute.
StatusOr<Survey> SurveyCheckpoints(FileSystem& files, const std::string& folder);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_SURVEY_H_
