#include "tests/tidy/prose.h"

#include <cctype>
#include <iterator>
#include <map>
#include <regex>
#include <utility>

namespace troupe {
namespace {

// Returns the comment and the string literals of a line of C++ or protobuf. A raw string literal
// counts up to the end of its line.
std::string CommentAndStrings(const std::string& line) {
  std::string text;
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (!quoted && line.compare(i, 2, "//") == 0) return text + line.substr(i + 2);
    if (!quoted && line[i] == '\'' && i + 2 < line.size()) {  // a character such as '"'
      const size_t end = line.find('\'', i + (line[i + 1] == '\\' ? 3 : 2));
      if (end != std::string::npos && end - i <= 3) i = end;
      continue;
    }
    if (quoted && line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
      text += ' ';
    } else if (quoted) {
      text += line[i];
    }
  }
  return text;
}

bool HasComments(const std::string& path) {
  for (const char* extension : {".h", ".cc", ".cu", ".def", ".proto"}) {
    if (path.ends_with(extension)) return true;
  }
  return false;
}

// Returns `text` in lower case, with single spaces and without marks of comments at its ends.
std::string Normalized(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool is_space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (is_space && (result.empty() || result.back() == ' ')) continue;
    result += is_space ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  while (!result.empty() && (result.back() == ' ' || result.back() == '#')) result.pop_back();
  const size_t begin = result.find_first_not_of("# ");
  return begin == std::string::npos ? "" : result.substr(begin);
}

bool IsWordCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Returns the words of an identifier: "Fits2Gib" and "fits_2_gib" are "Fits 2 Gib" and "fits 2
// gib".
std::string WordsOf(std::string_view identifier) {
  std::string words;
  for (size_t i = 0; i < identifier.size(); ++i) {
    const auto c = static_cast<unsigned char>(identifier[i]);
    const bool after_digit = i > 0 && std::isdigit(static_cast<unsigned char>(identifier[i - 1]));
    if (std::isupper(c) != 0 || (std::isdigit(c) != 0 && !after_digit)) words += ' ';
    words += c == '_' ? ' ' : identifier[i];
  }
  return words;
}

// Returns the words of the test's name if a test begins in this line; else an empty text.
std::string WordsOfTestName(const std::string& line) {
  static const std::regex begin("(?:TEST(?:_F|_P)?\\(\\w+, |    def test_)(\\w+)");
  std::smatch match;
  const auto at_begin = std::regex_constants::match_continuous;
  if (!std::regex_search(line, match, begin, at_begin)) return {};
  return WordsOf(match[1].str());
}

}  // namespace

std::vector<ProseLine> ProseOf(const SourceFile& file) {
  const bool has_comments = HasComments(file.path);
  std::vector<ProseLine> prose;
  for (size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    const std::string text = has_comments ? CommentAndStrings(line) : line;
    prose.push_back({i + 1, Normalized(text + " " + WordsOfTestName(line))});
  }
  return prose;
}

std::vector<size_t> LinesWith(const std::vector<ProseLine>& prose, std::string_view phrase) {
  std::string text;
  std::map<size_t, size_t> line_at;  // by offset in `text`
  for (const ProseLine& line : prose) {
    line_at[text.size()] = line.number;
    text += line.text + " ";
  }
  std::vector<size_t> found;
  for (size_t at = text.find(phrase); at != std::string::npos; at = text.find(phrase, at + 1)) {
    const size_t end = at + phrase.size();
    const bool begins = at == 0 || !IsWordCharacter(text[at - 1]);
    const bool ends = end == text.size() || !IsWordCharacter(text[end]);
    if (begins && ends) found.push_back(std::prev(line_at.upper_bound(at))->second);
  }
  return found;
}

}  // namespace troupe
