#include "data/json_lines.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text/utf8.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kSpaceAndLineEnds = " \t\r\n";
constexpr size_t kShownKeysMax = 8;    // a message has no more of them
constexpr size_t kShownBytesMax = 40;  // a text in a message is cut there
constexpr int kOutOfRange = 406;       // the parser's code of a number that float64 cannot hold

// Returns a part of an untrusted text in quotes, in ASCII and with control characters escaped.
std::string QuotedPart(std::string_view text) {
  std::string shown = Json(std::string(text.substr(0, kShownBytesMax)))
                          .dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  return text.size() > kShownBytesMax ? shown + "…" : shown;
}

// Handles the events of the JSON parser, which is not recursive and does not throw into our code.
// Takes the string at one key of the outermost object.
class LineHandler final : public nlohmann::json_sax<Json> {
 public:
  // If `text` is null, it finds out only whether there is the key.
  LineHandler(std::string_view key, std::string* text) : key_(key), text_(text) {}

  // If the parse has failed: the text of the error, and the bytes of the line that were read
  // before.
  const std::string& error() const { return error_; }
  size_t error_position() const { return error_position_; }
  bool has_key() const { return has_key_; }
  // The first keys, for a message.
  const std::vector<std::string>& keys() const { return keys_; }

  bool null() override { return Value("null"); }
  bool boolean(bool value) override { return Value(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return Number(value); }
  bool number_unsigned(number_unsigned_t value) override { return Number(value); }
  bool number_float(number_float_t, const string_t& text) override {
    return is_wanted_ || depth_ == 0 ? Value("the number " + text.substr(0, kShownBytesMax)) : true;
  }
  bool binary(binary_t&) override { return Value("binary"); }
  bool string(string_t& value) override {
    if (!is_wanted_) return Value("a string");
    is_wanted_ = false;
    if (text_ != nullptr) text_->swap(value);
    return true;
  }
  bool start_object(size_t) override {
    if (depth_ > 0 && !Value("an object")) return false;
    ++depth_;
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ > 1) return true;
    if (keys_.size() < kShownKeysMax) keys_.push_back(value.substr(0, kShownBytesMax + 1));
    if (value != key_) return true;
    if (has_key_ && text_ != nullptr) return Fail("has the key {} twice", QuotedPart(key_));
    has_key_ = is_wanted_ = true;
    return true;
  }
  bool end_object() override { return End(); }
  bool start_array(size_t) override {
    if (!Value("an array")) return false;
    ++depth_;
    return true;
  }
  bool end_array() override { return End(); }
  bool parse_error(size_t position, const std::string&, const Json::exception& error) override {
    error_position_ = position;
    return error.id == kOutOfRange ? Fail("has a number that float64 cannot hold")
                                   : Fail("is not one JSON object from byte {} on", position);
  }

 private:
  template <typename... Args>
  bool Fail(fmt::format_string<Args...> format, Args&&... args) {
    error_ = fmt::format(format, std::forward<Args>(args)...);
    return false;
  }
  template <typename T>
  bool Number(T value) {
    return is_wanted_ || depth_ == 0 ? Value(fmt::format("the number {}", value)) : true;
  }
  // A value that is not the string at the key.
  bool Value(std::string_view what) {
    if (depth_ == 0) return Fail("is {}, not an object", what);
    if (is_wanted_ && text_ != nullptr) {
      return Fail("has {} at the key {}, not a string", what, QuotedPart(key_));
    }
    is_wanted_ = false;
    return true;
  }
  bool End() {
    --depth_;
    return true;
  }

  const std::string_view key_;
  std::string* const text_;
  int64_t depth_ = 0;
  bool has_key_ = false;
  bool is_wanted_ = false;  // the next value is that of the key
  std::vector<std::string> keys_;
  std::string error_;
  size_t error_position_ = 0;
};

// Returns the value of an escape \uXXXX at the start of `text`, or -1.
int EscapedUnit(std::string_view text) {
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return -1;
  int unit = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  return error == std::errc() && end == text.data() + 6 ? unit : -1;
}

// Makes every escape of half a surrogate pair that of U+FFFD, and returns their number.
int64_t ReplaceHalfPairs(std::string& line) {
  int64_t replaced = 0;
  const std::string_view text = line;
  for (size_t at = text.find('\\'); at < text.size(); at = text.find('\\', at)) {
    const int unit = EscapedUnit(text.substr(at));
    if (unit < 0xD800 || unit > 0xDFFF) {
      at += 2;
      continue;
    }
    const int next = unit < 0xDC00 ? EscapedUnit(text.substr(at + 6)) : -1;
    if (next >= 0xDC00 && next <= 0xDFFF) {
      at += 12;
      continue;
    }
    line.replace(at, 6, "\\ufffd");
    ++replaced;
    at += 6;
  }
  return replaced;
}

}  // namespace

bool IsJsonLinesName(std::string_view path) {
  for (const std::string_view compression : {".gz", ".zst"}) {
    if (path.ends_with(compression)) path.remove_suffix(compression.size());
  }
  return path.ends_with(".jsonl");
}

bool LooksLikeJsonLines(std::string_view head, bool is_whole,
                        const std::optional<std::string>& stated_key) {
  if (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  const size_t begin = head.find_first_not_of(kSpaceAndLineEnds);
  if (begin == std::string_view::npos || head[begin] != '{') return false;
  head.remove_prefix(begin);
  const size_t end = head.find('\n');
  std::string line(head.substr(0, end));
  const size_t first = line.find_first_not_of(kSpaceAndLineEnds, 1);
  const bool begins_well = first < line.size() && (line[first] == '"' || line[first] == '}');
  if (end == std::string_view::npos && !is_whole) return begins_well;
  ReplaceIllFormed(line);
  ReplaceHalfPairs(line);
  const std::string key = stated_key.value_or(kDefaultJsonKey);
  LineHandler handler(key, nullptr);
  Json::sax_parse(line.begin(), line.end(), &handler);
  if (end == std::string_view::npos && handler.has_key()) return true;
  if (!begins_well || line[line.find_last_not_of(kSpaceAndLineEnds)] != '}') return false;
  if (handler.has_key()) return true;
  const size_t next = head.find_first_not_of(kSpaceAndLineEnds, end);
  if (next < head.size()) return head[next] == '{';
  return !is_whole || stated_key.has_value();
}

StatusOr<bool> JsonLines::NextLine() {
  line_.clear();
  ++line_number_;
  for (;;) {
    if (rest_.empty()) {
      TROUPE_ASSIGN_OR_RETURN(rest_, file_.Next());
      if (rest_.empty()) return !line_.empty();
    }
    const size_t end = rest_.find('\n');
    const std::string_view part = rest_.substr(0, end);
    if (static_cast<int64_t>(line_.size() + part.size()) > bytes_max_) {
      return InvalidArgument("{}: the line has more than {} bytes; each line is one document",
                             place(), bytes_max_);
    }
    line_ += part;
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (end != std::string_view::npos) return true;
  }
}

StatusOr<bool> JsonLines::Next(std::string& text) {
  do {
    TROUPE_ASSIGN_OR_RETURN(const bool is_there, NextLine());
    if (!is_there) return false;
    if (line_.starts_with(kByteOrderMark)) line_.erase(0, kByteOrderMark.size());
  } while (line_.find_first_not_of(kSpaceAndLineEnds) == std::string::npos);
  replaced_ = ReplaceIllFormed(line_) + ReplaceHalfPairs(line_);
  LineHandler handler(key_, &text);
  const bool is_json = Json::sax_parse(line_.begin(), line_.end(), &handler);
  if (!is_json) {
    const size_t begin =
        std::max(handler.error_position(), kShownBytesMax / 2) - kShownBytesMax / 2;
    return InvalidArgument(
        "{}: the line {}: {}", place(), handler.error(),
        QuotedPart(std::string_view(line_).substr(std::min(begin, line_.size()))));
  }
  if (!handler.has_key()) {
    std::string keys;
    for (const std::string& key : handler.keys()) keys += ", " + QuotedPart(key);
    if (handler.keys().size() == kShownKeysMax) keys += ", …";
    return InvalidArgument(
        "{}: the line has no key {}; its keys are [{}]; --json-key states the one of the text",
        place(), QuotedPart(key_), keys.empty() ? keys : keys.substr(2));
  }
  return true;
}

}  // namespace troupe
