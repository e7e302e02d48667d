// The checkpoints of a job as a table. Pure.
#ifndef TROUPE_CLI_OUTPUT_CHECKPOINT_TABLE_H_
#define TROUPE_CLI_OUTPUT_CHECKPOINT_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output/text_style.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

struct CheckpointTableOptions {
  int64_t now_ns = 0;  // the present, in nanoseconds since the Unix epoch
  TextStyle style;
  // Each row has its path and digest, and states are left out if all are committed. Otherwise a
  // directory of all checkpoints is in the title.
  bool has_paths_and_digests = false;
};

// Returns a table with a line for each checkpoint, and below it why it is quarantined, or who
// doubts it. Where the table is too wide, paths and digests are shortened, notes are below their
// lines, and then digests are left out.
std::string CheckpointTableText(const std::vector<v1::CheckpointRecord>& checkpoints,
                                const CheckpointTableOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_CHECKPOINT_TABLE_H_
