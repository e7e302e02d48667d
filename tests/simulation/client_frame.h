// Frames between the simulated client and the coordinator's shell: a letter, the client's number of
// the call, and a message of service.proto. An answer has its status code instead of the letter.
#ifndef TROUPE_TESTS_SIMULATION_CLIENT_FRAME_H_
#define TROUPE_TESTS_SIMULATION_CLIENT_FRAME_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace troupe::simulation {

enum class CallKind : char {
  kCreateJob = 'C',
  kCancelJob = 'X',
  kCreateCheckpoint = 'P',
  kPinCheckpoint = 'K',
  kResumeJob = 'R',
  kRebuildJob = 'B',
  kDeleteJob = 'D',
  // A CreateJob with the request id of another job; not a separate call on the wire.
  kAlteredJob = 'A',
};

struct ClientFrame {
  char kind = 0;  // a CallKind, or the StatusCode of an answer
  uint64_t number = 0;
  std::string
      payload;  // request; answer: serialized Job or CheckpointRecord, or the message of an error
};

// Client frames begin with a byte that no worker message begins with (there is no protobuf tag of
// field 0).
inline constexpr char kClientMark = 0;

inline std::string Encode(const ClientFrame& frame) {
  std::string bytes(2 + sizeof(frame.number), kClientMark);
  bytes[1] = frame.kind;
  std::memcpy(&bytes[2], &frame.number, sizeof(frame.number));
  return bytes + frame.payload;
}

inline std::optional<ClientFrame> DecodeClientFrame(const std::string& bytes) {
  ClientFrame frame;
  if (bytes.size() < 2 + sizeof(frame.number) || bytes[0] != kClientMark) return std::nullopt;
  frame.kind = bytes[1];
  std::memcpy(&frame.number, &bytes[2], sizeof(frame.number));
  frame.payload = bytes.substr(2 + sizeof(frame.number));
  return frame;
}

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_CLIENT_FRAME_H_
