#include "base/text/wrapped.h"

#include <algorithm>

#include "base/text/display_width.h"
#include "base/text/utf8.h"

namespace troupe {
namespace {

constexpr size_t kLeastColumns = 8;  // least width of a text behind a prefix

// Returns the part of a word that is put at the end of a line with `room` columns left, at least a
// character. REQUIRES: `word` is not empty.
std::string_view PartThatFits(std::string_view word, size_t room) {
  const std::string_view part = FirstDisplayColumns(word, room);
  if (part.size() == word.size()) return part;
  const size_t slash = part.rfind('/');
  if (slash != std::string_view::npos && slash > 0) return part.substr(0, slash + 1);
  if (!part.empty()) return part;
  return word.substr(0, static_cast<size_t>(std::max(1, Utf8Character(word))));
}

// Collects lines.
class LineBreaker {
 public:
  LineBreaker(size_t columns, std::string_view indent, LongWords long_words)
      : columns_(columns), indent_(indent), long_words_(long_words) {}

  void Add(std::string_view word) {
    const size_t width = DisplayColumns(word);
    if (!begins_text_ && used_ + 1 + width > columns_) {
      BeginLine();
    } else if (!begins_text_) {
      lines_ += ' ';
      ++used_;
    }
    begins_text_ = begins_text_ && word.empty();
    if (long_words_ == LongWords::kBroken) word = WithoutFullLines(word);
    lines_ += word;
    used_ += DisplayColumns(word);
  }

  const std::string& lines() const { return lines_; }

 private:
  void BeginLine() {
    lines_ += '\n';
    lines_ += indent_;
    used_ = DisplayColumns(indent_);
  }

  // Adds the parts of `word` that fill lines, and returns the rest.
  std::string_view WithoutFullLines(std::string_view word) {
    while (used_ + DisplayColumns(word) > columns_) {
      const std::string_view part = PartThatFits(word, columns_ - std::min(used_, columns_));
      if (part.size() == word.size()) break;
      lines_ += part;
      word.remove_prefix(part.size());
      BeginLine();
    }
    return word;
  }

  const size_t columns_;
  const std::string_view indent_;
  const LongWords long_words_;
  std::string lines_;
  size_t used_ = 0;  // columns of the last line
  bool begins_text_ = true;
};

}  // namespace

std::string Wrapped(std::string_view text, size_t columns, std::string_view indent,
                    LongWords long_words) {
  LineBreaker breaker(columns, indent, long_words);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    breaker.Add(text.substr(at, end - at));
    at = end + 1;
  }
  return breaker.lines();
}

std::string WrappedBehind(std::string_view prefix, std::string_view text, size_t columns) {
  const size_t begin = DisplayColumns(prefix);
  const size_t room = std::max(columns - std::min(begin, columns), kLeastColumns);
  const std::string lines = Wrapped(text, room, "", LongWords::kBroken);
  std::string behind(prefix);
  for (const char c : lines) {
    behind += c;
    if (c == '\n') behind.append(begin, ' ');
  }
  return behind;
}

}  // namespace troupe
