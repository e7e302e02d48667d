#include "worker/rank/frame.h"

#include <google/protobuf/message.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/check.h"
#include "worker/rank/utf8_texts.h"

namespace troupe {

std::string EncodeFrame(const google::protobuf::Message& message, FrameTexts texts) {
  if (texts == FrameTexts::kAny) {
    const std::unique_ptr<google::protobuf::Message> copy(message.New());
    copy->CopyFrom(message);
    MakeTextsUtf8(copy.get());
    return EncodeFrame(*copy, FrameTexts::kUtf8);
  }
  std::string frame(4, '\0');
  TROUPE_CHECK(message.AppendToString(&frame), "a message cannot be serialized");
  const size_t length = frame.size() - 4;
  TROUPE_CHECK(length <= kFrameBytesMax, "a frame has {} bytes", length);
  for (int i = 0; i < 4; ++i) frame[i] = static_cast<char>(length >> (8 * i) & 0xff);
  return frame;
}

StatusOr<std::optional<std::string>> FrameDecoder::Next() {
  if (buffer_.size() - read_ < 4) return std::optional<std::string>();
  uint32_t length = 0;
  for (int i = 0; i < 4; ++i)
    length |= static_cast<uint32_t>(static_cast<uint8_t>(buffer_[read_ + i])) << (8 * i);
  if (length > kFrameBytesMax) {
    return InvalidArgument("a frame claims {} bytes, above the limit of {}", length,
                           kFrameBytesMax);
  }
  if (buffer_.size() - read_ - 4 < length) return std::optional<std::string>();
  std::string payload = buffer_.substr(read_ + 4, length);
  read_ += 4 + length;
  if (read_ > 65536 || read_ == buffer_.size()) {
    buffer_.erase(0, read_);
    read_ = 0;
  }
  return std::optional<std::string>(std::move(payload));
}

FrameSocket::~FrameSocket() { close(descriptor_); }

Status FrameSocket::Send(const google::protobuf::Message& message, FrameTexts texts) {
  const std::string frame = EncodeFrame(message, texts);
  std::lock_guard lock(send_mutex_);
  size_t sent = 0;
  while (sent < frame.size()) {
    const ssize_t count = send(descriptor_, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return Unavailable("the daemon has closed the connection: {}",
                         ErrnoStatus(errno, "send").ToString());
    sent += static_cast<size_t>(count);
  }
  return OkStatus();
}

StatusOr<std::optional<std::string>> FrameSocket::Receive(int limit_ms) {
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(std::optional<std::string> frame, decoder_.Next());
    if (frame) return frame;
    pollfd poller{descriptor_, POLLIN, 0};
    const int ready = poll(&poller, 1, limit_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return std::optional<std::string>();
    char bytes[65536];
    const ssize_t count = read(descriptor_, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Unavailable("the daemon has closed the connection");
    decoder_.Append({bytes, static_cast<size_t>(count)});
  }
}

}  // namespace troupe
