// Frames on the socket between a daemon and a rank process: a little-endian uint32 length, then so
// many bytes of one protobuf message.
#ifndef TROUPE_WORKER_RANK_FRAME_H_
#define TROUPE_WORKER_RANK_FRAME_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace google::protobuf {
class MessageLite;
}

namespace troupe {

// Longer frames are refused: a plan of thousands of ranks stays far below.
inline constexpr uint32_t kFrameBytesMax = 64u << 20;

// REQUIRES: the message is not longer than kFrameBytesMax.
std::string EncodeFrame(const google::protobuf::MessageLite& message);

// Bytes in, whole frames out.
class FrameDecoder {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // The next frame's payload; nothing if it is not complete. INVALID_ARGUMENT for a length above
  // kFrameBytesMax: the stream cannot be read on.
  StatusOr<std::optional<std::string>> Next();

 private:
  std::string buffer_;
  size_t read_ = 0;  // bytes of buffer_ that were given out
};

// A rank process' end of the socket; blocking. Send may be called from any thread, Receive from
// one.
class FrameSocket {
 public:
  // Owns `descriptor`.
  explicit FrameSocket(int descriptor) : descriptor_(descriptor) {}
  ~FrameSocket();
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;

  // UNAVAILABLE when the other end is gone.
  Status Send(const google::protobuf::MessageLite& message);
  // The next frame, or nothing if none came within `limit_ms` (-1: no limit; the other end's death
  // ends it). UNAVAILABLE at end of file.
  StatusOr<std::optional<std::string>> Receive(int limit_ms);

 private:
  const int descriptor_;
  std::mutex send_mutex_;
  FrameDecoder decoder_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_FRAME_H_
