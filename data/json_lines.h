// JSON lines: a text with one JSON object a line, of which the string at one key is a document.
//
// Lines end in LF or CRLF, and the last one may lack its end. Empty lines are skipped, and so is a
// byte order mark. What is not UTF-8, and an escape of half a surrogate pair, becomes U+FFFD, as in
// other texts (base/text/utf8.h).
#ifndef TROUPE_DATA_JSON_LINES_H_
#define TROUPE_DATA_JSON_LINES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data/decompressed_file.h"

namespace troupe {

// Returns whether the name is one of JSON lines: *.jsonl, *.jsonl.gz or *.jsonl.zst.
bool IsJsonLinesName(std::string_view path);

// The key of the text where none is stated.
inline constexpr const char* kDefaultJsonKey = "text";

// Returns whether a text looks like JSON lines by its first bytes, `head`, which are all of it if
// `is_whole`: its first line looks like a whole object, and it has the key, or the second line
// begins like an object too, or there is no second line and the key is stated. If the rest of the
// first line, or the second line, is not in `head`, it is taken for one of JSON lines; so is a text
// of a line without an end that is cut but has the key. A JSON document on many lines does not look
// like them, nor does one alone on a line that lacks the key `text` if none is stated.
bool LooksLikeJsonLines(std::string_view head, bool is_whole,
                        const std::optional<std::string>& stated_key);

// Not thread-safe.
class JsonLines {
 public:
  // The largest line, which bounds the memory of a file that decompresses to one endless line.
  static constexpr int64_t kLineBytesMax = int64_t{64} << 20;

  // Reads `file`, named `path` in errors, which must outlive the object.
  JsonLines(DecompressedFile& file, std::string path, std::string key,
            int64_t line_bytes_max = kLineBytesMax)
      : file_(file), path_(std::move(path)), key_(std::move(key)), bytes_max_(line_bytes_max) {}

  // Sets `text` to the next document; false after the last one. INVALID_ARGUMENT names file, line
  // and value if the line is not one JSON object or is longer than the limit, if the object lacks
  // the key or has it twice, or if its value is not a string. Also returns the errors of
  // DecompressedFile::Next. REQUIRES: no call has failed.
  StatusOr<bool> Next(std::string& text);

  // Returns "PATH:LINE" of the document.
  std::string place() const { return fmt::format("{}:{}", path_, line_number_); }
  // Returns how many parts of its line became U+FFFD.
  int64_t replaced() const { return replaced_; }

 private:
  // Sets `line_` to the next line, without its end; false at the end of the file.
  StatusOr<bool> NextLine();

  DecompressedFile& file_;
  const std::string path_;
  const std::string key_;
  const int64_t bytes_max_;
  std::string_view rest_;  // the rest of the part that was read last
  std::string line_;
  int64_t line_number_ = 0;
  int64_t replaced_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_DATA_JSON_LINES_H_
