#include "checkpoint/format/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/text_file.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

// Handles the events of the JSON parser, which is not recursive and does not throw into our code.
// An event that the format does not allow ends the parse with `error_`.
class HeaderHandler final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderHandler(SafetensorsHeader& header) : header_(header) {}

  const Status& error() const { return error_; }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_float(number_float_t, const string_t& text) override {
    return Unexpected(fmt::format("number {}", text));
  }
  bool binary(binary_t&) override { return Unexpected("binary"); }
  bool number_integer(number_integer_t value) override {
    return Unexpected(fmt::format("number {}", value));
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::kShape && state_ != State::kOffsets) {
      return Unexpected(fmt::format("number {}", value));
    }
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Fail("tensor {}: {} {} is above 2^63 - 1", Shown(entry_.name), key_, value);
    }
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    if (state_ == State::kMetadata) {
      header_.metadata[key_] = value;
      return true;
    }
    if (state_ == State::kEntry && key_ == "dtype") {
      entry_.dtype = value;
      return true;
    }
    return Unexpected("a string");
  }

  bool start_object(size_t) override {
    switch (state_) {
      case State::kStart:
        state_ = State::kTop;
        return true;
      case State::kTop:
        state_ = key_ == "__metadata__" ? State::kMetadata : State::kEntry;
        entry_ = {.name = key_};
        entry_keys_.clear();
        return true;
      default:
        return Unexpected("an object");
    }
  }

  bool key(string_t& value) override {
    key_ = value;
    switch (state_) {
      case State::kTop:
        if (!names_.insert(value).second) return Fail("{} appears twice", Shown(value));
        return true;
      case State::kMetadata:
        if (header_.metadata.contains(value)) {
          return Fail("__metadata__: key {} appears twice", Shown(value));
        }
        return true;
      case State::kEntry:
        if (value != "dtype" && value != "shape" && value != "data_offsets") {
          return Fail("tensor {}: unknown key {}", Shown(entry_.name), Shown(value));
        }
        if (!entry_keys_.insert(value).second) {
          return Fail("tensor {}: key {} appears twice", Shown(entry_.name), value);
        }
        return true;
      default:
        return Unexpected("a key");
    }
  }

  bool end_object() override {
    if (state_ == State::kEntry) {
      if (entry_keys_.size() != 3) {
        return Fail("tensor {}: dtype, shape or data_offsets is missing", Shown(entry_.name));
      }
      header_.entries.push_back(std::move(entry_));
    }
    state_ = state_ == State::kTop ? State::kDone : State::kTop;
    return true;
  }

  bool start_array(size_t) override {
    if (state_ != State::kEntry || key_ == "dtype") return Unexpected("an array");
    state_ = key_ == "shape" ? State::kShape : State::kOffsets;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    if (state_ == State::kShape) {
      entry_.shape = numbers_;
    } else {
      if (numbers_.size() != 2) {
        return Fail("tensor {}: data_offsets has {} numbers, not 2", Shown(entry_.name),
                    numbers_.size());
      }
      entry_.begin = numbers_[0];
      entry_.end = numbers_[1];
    }
    state_ = State::kEntry;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    return Fail("invalid JSON at byte {}", position);
  }

 private:
  enum class State { kStart, kTop, kEntry, kShape, kOffsets, kMetadata, kDone };

  // Names come from untrusted files: a message shows at most this much of one.
  static std::string Shown(std::string_view name) {
    return fmt::format("\"{}\"", name.substr(0, 128));
  }

  template <typename... Args>
  bool Fail(fmt::format_string<Args...> format, Args&&... args) {
    error_ =
        InvalidArgument("safetensors header: {}", fmt::format(format, std::forward<Args>(args)...));
    return false;
  }
  bool Unexpected(std::string_view what) {
    return Fail("unexpected {} at {}", what, key_.empty() ? "the start" : Shown(key_));
  }

  SafetensorsHeader& header_;
  State state_ = State::kStart;
  std::string key_;
  SafetensorsEntry entry_;
  std::vector<int64_t> numbers_;
  std::set<std::string> names_;
  std::set<std::string> entry_keys_;
  Status error_;
};

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted += '"';
}

}  // namespace

StatusOr<SafetensorsHeader> ParseSafetensorsJson(std::string_view json, int64_t buffer_bytes) {
  SafetensorsHeader header;
  if (json.empty() || json.front() != '{') {
    return InvalidArgument("safetensors header: does not begin with \"{{\"");
  }
  HeaderHandler handler(header);
  if (!Json::sax_parse(json.begin(), json.end(), &handler)) return handler.error();

  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  int64_t end = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    const std::string shown = entry.name.substr(0, 128);
    const auto bytes = DenseBytes(entry.shape, entry.dtype);
    if (!bytes.ok()) {
      return Annotate(bytes.status(), fmt::format("safetensors header: tensor \"{}\"", shown));
    }
    if (entry.begin != end) {
      return InvalidArgument(
          "safetensors header: tensor \"{}\" begins at {}, but the data before it ends at {}",
          shown, entry.begin, end);
    }
    if (entry.end < entry.begin || entry.end - entry.begin != *bytes) {
      return InvalidArgument(
          "safetensors header: tensor \"{}\": data_offsets [{}, {}] do not have the {} bytes of "
          "shape {} of {}",
          shown, entry.begin, entry.end, *bytes, ToString(entry.shape), entry.dtype);
    }
    end = entry.end;
  }
  if (end != buffer_bytes) {
    return InvalidArgument("safetensors header: the tensors end at {}, but the buffer has {} bytes",
                           end, buffer_bytes);
  }
  return header;
}

namespace {

// The error of a file whose first eight bytes are no length of a header.
Status NoHeader(const ReadableFile& file, uint64_t length) {
  std::string begin(kGitLfsPointerBegin.size(), '\0');
  if (file.size() >= static_cast<int64_t>(begin.size())) {
    TROUPE_RETURN_IF_ERROR(
        file.ReadAt(0, std::as_writable_bytes(std::span(begin.data(), begin.size()))));
    if (IsGitLfsPointer(begin)) return GitLfsPointerFault();
  }
  return InvalidArgument(
      "safetensors header length {} is above the limit {} or the {} bytes that follow", length,
      kSafetensorsHeaderBytesMax, file.size() - 8);
}

}  // namespace

StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const ReadableFile& file) {
  if (file.size() < 8) {
    return InvalidArgument("size {} is below the 8 bytes of a safetensors file", file.size());
  }
  uint64_t length = 0;
  TROUPE_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(&length, 1))));
  if (length > static_cast<uint64_t>(kSafetensorsHeaderBytesMax) ||
      length > static_cast<uint64_t>(file.size() - 8)) {
    return NoHeader(file, length);
  }
  std::string json(static_cast<size_t>(length), '\0');
  TROUPE_RETURN_IF_ERROR(
      file.ReadAt(8, std::as_writable_bytes(std::span(json.data(), json.size()))));
  const int64_t buffer_offset = 8 + static_cast<int64_t>(length);
  TROUPE_ASSIGN_OR_RETURN(SafetensorsHeader header,
                          ParseSafetensorsJson(json, file.size() - buffer_offset));
  header.buffer_offset = buffer_offset;
  return header;
}

StatusOr<std::string> LayOutSafetensors(std::vector<SafetensorsEntry>& entries,
                                        const std::map<std::string, std::string>& metadata,
                                        int64_t alignment) {
  for (const SafetensorsEntry& entry : entries) {
    TROUPE_RETURN_IF_ERROR(DtypeBits(entry.dtype).status());
  }
  std::sort(entries.begin(), entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::tuple(DtypeOrder(a.dtype), std::string_view(a.name)) <
                     std::tuple(DtypeOrder(b.dtype), std::string_view(b.name));
            });
  std::string json = "{";
  std::set<std::string_view> names{"__metadata__"};
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      if (json.back() != '{') json += ',';
      json += fmt::format("{}:{}", Quoted(key), Quoted(value));
    }
    json += '}';
  }
  int64_t end = 0;
  for (SafetensorsEntry& entry : entries) {
    if (!names.insert(entry.name).second) {
      return InvalidArgument("tensor {} appears twice in one file", entry.name);
    }
    const auto bytes = DenseBytes(entry.shape, entry.dtype);
    if (!bytes.ok()) return Annotate(bytes.status(), fmt::format("tensor {}", entry.name));
    entry.begin = end;
    if (__builtin_add_overflow(end, *bytes, &end)) {
      return InvalidArgument("the tensors of one file have more than 2^63 - 1 bytes");
    }
    entry.end = end;
    if (json.size() > 1) json += ',';
    json += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        Quoted(entry.name), entry.dtype, fmt::join(entry.shape, ","), entry.begin,
                        entry.end);
  }
  json += '}';
  const size_t align = static_cast<size_t>(alignment);
  const size_t padded = (8 + json.size() + align - 1) / align * align - 8;
  if (padded > static_cast<size_t>(kSafetensorsHeaderBytesMax)) {
    return InvalidArgument("a header of {} bytes is above the limit {}", padded,
                           kSafetensorsHeaderBytesMax);
  }
  json.resize(padded, ' ');
  const uint64_t length = padded;
  std::string head(sizeof length, '\0');
  std::memcpy(head.data(), &length, sizeof length);
  return head + json;
}

}  // namespace troupe
