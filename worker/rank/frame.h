// Frames on the socket between a daemon and a rank process: a little-endian uint32 length, then
// that many bytes of one protobuf message.
#ifndef TROUPE_WORKER_RANK_FRAME_H_
#define TROUPE_WORKER_RANK_FRAME_H_

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace google::protobuf {
class Message;
}

namespace troupe {

// Longer frames are refused; a plan of thousands of ranks is much smaller.
inline constexpr uint32_t kFrameBytesMax = 64u << 20;

// The bytes that the texts of a message may have before it is sent.
enum class FrameTexts {
  kAny,   // they may have any byte: the frame has them made UTF-8 (MakeTextsUtf8)
  kUtf8,  // they are UTF-8, so that no time is spent on looking through them
};

// Encodes one frame. REQUIRES: the message has at most kFrameBytesMax bytes, and its texts are as
// `texts` states.
std::string EncodeFrame(const google::protobuf::Message& message,
                        FrameTexts texts = FrameTexts::kAny);

// Splits a stream of bytes into frames.
class FrameDecoder {
 public:
  void Append(std::string_view bytes) { buffer_.append(bytes); }
  // Returns the next frame's payload; absent if it is incomplete. Returns INVALID_ARGUMENT for a
  // length above kFrameBytesMax; the stream cannot be read any further.
  StatusOr<std::optional<std::string>> Next();

 private:
  std::string buffer_;
  size_t read_ = 0;  // bytes of buffer_ already returned
};

// A rank process's end of the socket; blocking. Any thread may call Send, only one thread Receive.
class FrameSocket {
 public:
  // Takes ownership of `descriptor`.
  explicit FrameSocket(int descriptor) : descriptor_(descriptor) {}
  ~FrameSocket();
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;

  // Sends the frame that EncodeFrame returns. Returns UNAVAILABLE if the other end is gone.
  Status Send(const google::protobuf::Message& message, FrameTexts texts = FrameTexts::kAny);
  // Returns the next frame, or nothing if none came within `limit_ms` milliseconds (-1: no limit;
  // the wait then ends at the latest when the other end dies). UNAVAILABLE at end of file.
  StatusOr<std::optional<std::string>> Receive(int limit_ms);

 private:
  const int descriptor_;
  std::mutex send_mutex_;
  FrameDecoder decoder_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_FRAME_H_
