// A TensorBoard event file of a job's steps, written while they arrive. Each record is written at
// once, so that TensorBoard shows it while the job runs. Not thread-safe.
#ifndef TROUPE_CLI_TENSORBOARD_EVENT_FILE_H_
#define TROUPE_CLI_TENSORBOARD_EVENT_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/step.pb.h"

namespace troupe {

class EventFile {
 public:
  struct Origin {
    double wall_time = 0;  // when the file is made, in seconds since the Unix epoch
    std::string host;
    int64_t pid = 0;
    int64_t first_step = 0;  // no earlier step will be added
  };

  // Makes `directory` if it does not exist, and in it a new file, events.out.tfevents.SECONDS.
  // HOST.PID.0, with the job's specification as a text. TensorBoard drops what earlier files of the
  // directory have of `first_step` and later ones, so that no point is shown twice.
  // INVALID_ARGUMENT if `directory` is a file.
  static StatusOr<EventFile> Create(FileSystem& files, const std::string& directory,
                                    const v1::JobSpec& spec, const Origin& origin);

  const std::string& path() const { return path_; }

  // Adds the figures of a step. A step that a recovery repeats replaces the earlier one and those
  // after it. `now`: the time to record if the step has none.
  Status Add(const v1::StepEvent& step, double now);

 private:
  EventFile(std::string path, std::unique_ptr<WritableFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  Status Append(const std::string& records);

  std::string path_;
  std::unique_ptr<WritableFile> file_;
  int64_t last_step_ = -1;
};

}  // namespace troupe

#endif  // TROUPE_CLI_TENSORBOARD_EVENT_FILE_H_
