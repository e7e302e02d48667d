#include "data/token_array.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include "base/check.h"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian");

// The elements of these files are not aligned.
template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Returns whether `value` is an integer in [0, vocab_size); a NaN is not.
template <typename T>
bool IsToken(T value, int64_t vocab_size) {
  if constexpr (std::is_floating_point_v<T>) {
    return value >= 0 && value < static_cast<T>(vocab_size) &&
           static_cast<T>(static_cast<int64_t>(value)) == value;
  } else {
    return static_cast<int64_t>(value) >= 0 && static_cast<int64_t>(value) < vocab_size;
  }
}

// Calls `read` with a value of the element type that `type` names.
template <typename Read>
auto WithElement(TokenType type, Read read) {
  switch (type) {
    case TokenType::kUint8:
      return read(uint8_t{});
    case TokenType::kInt8:
      return read(int8_t{});
    case TokenType::kInt16:
      return read(int16_t{});
    case TokenType::kUint16:
      return read(uint16_t{});
    case TokenType::kUint32:
      return read(uint32_t{});
    case TokenType::kInt32:
      return read(int32_t{});
    case TokenType::kInt64:
      return read(int64_t{});
    case TokenType::kFloat32:
      return read(float{});
    case TokenType::kFloat64:
      return read(double{});
  }
  TROUPE_CHECK(false, "token type {}", static_cast<int>(type));
}

}  // namespace

TokenArray::TokenArray(std::string path, std::shared_ptr<const MappedFile> file, int64_t offset,
                       TokenType type, int64_t tokens)
    : path_(std::move(path)), file_(std::move(file)), type_(type), tokens_(tokens) {
  const int64_t bytes = static_cast<int64_t>(file_->bytes().size());
  TROUPE_CHECK(TokenBytes(type) > 0 && offset >= 0 && offset <= bytes && tokens >= 0 &&
               tokens <= (bytes - offset) / TokenBytes(type));
  begin_ = file_->bytes().data() + offset;
}

Status TokenArray::Read(int64_t position, int64_t vocab_size, std::span<int32_t> out) const {
  TROUPE_CHECK(position >= 0 && position <= tokens_ &&
                   static_cast<int64_t>(out.size()) <= tokens_ - position,
               "tokens [{}, +{}) of {}", position, out.size(), tokens_);
  return WithElement(type_, [&]<typename T>(T) -> Status {
    const std::byte* const from = begin_ + position * static_cast<int64_t>(sizeof(T));
    for (size_t i = 0; i < out.size(); ++i) {
      const T value = Load<T>(from + i * sizeof(T));
      if (!IsToken(value, vocab_size)) {
        // The unary + makes a one-byte value print as a number.
        return InvalidArgument("{}: token {} at position {} is not in [0, vocab_size {})", path_,
                               +value, position + static_cast<int64_t>(i), vocab_size);
      }
      out[i] = static_cast<int32_t>(value);
    }
    return OkStatus();
  });
}

}  // namespace troupe
