// Encodes the records of a TensorBoard event file. A record is the length of its event (u64), the
// masked CRC-32C of the length (u32), the event, and the masked CRC-32C of the event (u32), all
// little-endian. An event is a protobuf message of TensorFlow. Pure.
#ifndef TROUPE_CLI_TENSORBOARD_EVENT_RECORD_H_
#define TROUPE_CLI_TENSORBOARD_EVENT_RECORD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

// The point of an event: seconds since the Unix epoch, and the training step.
struct EventTime {
  double wall_time = 0;
  int64_t step = 0;
};

struct EventScalar {
  std::string tag;
  double value = 0;  // stored as float32
};

// Frames the bytes of an event.
std::string EventRecord(std::string_view event);

// Every file begins with this record.
std::string VersionRecord(double wall_time);

// Makes TensorBoard discard the points of `time.step` and later ones that came before this record.
std::string RestartRecord(const EventTime& time);

// Shows `text`, as Markdown, in TensorBoard's plugin for texts.
std::string TextRecord(const EventTime& time, std::string_view tag, std::string_view text);

std::string ScalarsRecord(const EventTime& time, const std::vector<EventScalar>& scalars);

}  // namespace troupe

#endif  // TROUPE_CLI_TENSORBOARD_EVENT_RECORD_H_
