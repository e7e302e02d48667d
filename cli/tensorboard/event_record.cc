#include "cli/tensorboard/event_record.h"

#include <google/protobuf/unknown_field_set.h>

#include <bit>

#include "base/file_system.h"
#include "checkpoint/format/digest.h"

namespace troupe {
namespace {

// TensorFlow's schema is not among our sources: a message is a set of numbered fields.
using Fields = google::protobuf::UnknownFieldSet;

// Numbers of fields, by message.
constexpr int kEventWallTime = 1, kEventStep = 2, kEventVersion = 3, kEventSummary = 5,
              kEventSession = 7;
constexpr int kSummaryValue = 1;
constexpr int kValueTag = 1, kValueSimple = 2, kValueTensor = 8, kValueMetadata = 9;
constexpr int kTensorType = 1, kTensorShape = 2, kTensorText = 8;
constexpr int kMetadataPlugin = 1, kPluginName = 1;
constexpr int kSessionStatus = 1;

constexpr int kTextType = 7;      // DT_STRING
constexpr int kSessionStart = 1;  // SessionLog.START

std::string Bytes(const Fields& fields) {
  std::string bytes;
  fields.SerializeToString(&bytes);
  return bytes;
}

void SetTime(const EventTime& time, Fields* event) {
  event->AddFixed64(kEventWallTime, std::bit_cast<uint64_t>(time.wall_time));
  event->AddVarint(kEventStep, static_cast<uint64_t>(time.step));
}

// Unsigned little-endian bytes.
template <typename Number>
std::string LittleEndian(Number number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof number; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

// A CRC of data that contain CRCs would be a weak one: the format stores it rotated and offset.
std::string MaskedCrc(std::string_view bytes) {
  constexpr uint32_t kOffset = 0xa282ead8;
  return LittleEndian(std::rotr(Crc32c(AsBytes(bytes)), 15) + kOffset);
}

}  // namespace

std::string EventRecord(std::string_view event) {
  const std::string length = LittleEndian(uint64_t{event.size()});
  return length + MaskedCrc(length) + std::string(event) + MaskedCrc(event);
}

std::string VersionRecord(double wall_time) {
  Fields event;
  event.AddFixed64(kEventWallTime, std::bit_cast<uint64_t>(wall_time));
  event.AddLengthDelimited(kEventVersion, "brain.Event:2");
  return EventRecord(Bytes(event));
}

std::string RestartRecord(const EventTime& time) {
  Fields session;
  session.AddVarint(kSessionStatus, kSessionStart);
  Fields event;
  SetTime(time, &event);
  event.AddLengthDelimited(kEventSession, Bytes(session));
  return EventRecord(Bytes(event));
}

std::string TextRecord(const EventTime& time, std::string_view tag, std::string_view text) {
  Fields tensor, plugin, metadata, value, summary;
  tensor.AddVarint(kTensorType, kTextType);
  tensor.AddLengthDelimited(kTensorShape, "");  // no dimensions: one text
  tensor.AddLengthDelimited(kTensorText, std::string(text));
  plugin.AddLengthDelimited(kPluginName, "text");
  metadata.AddLengthDelimited(kMetadataPlugin, Bytes(plugin));
  value.AddLengthDelimited(kValueTag, std::string(tag));
  value.AddLengthDelimited(kValueTensor, Bytes(tensor));
  value.AddLengthDelimited(kValueMetadata, Bytes(metadata));
  summary.AddLengthDelimited(kSummaryValue, Bytes(value));
  Fields event;
  SetTime(time, &event);
  event.AddLengthDelimited(kEventSummary, Bytes(summary));
  return EventRecord(Bytes(event));
}

std::string ScalarsRecord(const EventTime& time, const std::vector<EventScalar>& scalars) {
  Fields summary;
  for (const EventScalar& scalar : scalars) {
    Fields value;
    value.AddLengthDelimited(kValueTag, scalar.tag);
    value.AddFixed32(kValueSimple, std::bit_cast<uint32_t>(static_cast<float>(scalar.value)));
    summary.AddLengthDelimited(kSummaryValue, Bytes(value));
  }
  Fields event;
  SetTime(time, &event);
  event.AddLengthDelimited(kEventSummary, Bytes(summary));
  return EventRecord(Bytes(event));
}

}  // namespace troupe
