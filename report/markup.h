// Builds HTML and SVG. Everything but constants of the program is escaped, so that no text of a job
// can become an element or an attribute, and its control characters are shown as PrintableLines
// does.
#ifndef TROUPE_REPORT_MARKUP_H_
#define TROUPE_REPORT_MARKUP_H_

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct Attribute {
  const char* name;  // a constant
  std::string value;
};

class Markup {
 public:
  using Attributes = std::vector<Attribute>;

  // Begins an element; `tag` is a constant.
  void Open(const char* tag, const Attributes& attributes = {});
  // Ends the element that began last. REQUIRES: there is one.
  void Close();
  void Text(std::string_view text);
  // Adds an element that contains `text` only.
  void Element(const char* tag, const Attributes& attributes, std::string_view text);
  // Adds an element without an end tag.
  void Empty(const char* tag, const Attributes& attributes);
  // Adds `constant` as it is. It must not contain data.
  void Constant(const char* constant);

  // Returns the text so far. REQUIRES: every element has ended.
  const std::string& text() const;

 private:
  void Begin(const char* tag, const Attributes& attributes);

  std::string text_;
  std::vector<const char*> open_;
};

// Formats a coordinate with at most one decimal.
std::string Coordinate(double value);

// Formats a number of a chart with four significant digits.
std::string Figure(double value);

}  // namespace troupe

#endif  // TROUPE_REPORT_MARKUP_H_
