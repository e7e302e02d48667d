#include "report/markup.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/text/printable.h"

namespace troupe {
namespace {

std::string Escaped(std::string_view text) {
  std::string escaped;
  // HTML has no way to write most control characters.
  for (const char c : PrintableLines(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace

void Markup::Begin(const char* tag, const Attributes& attributes) {
  text_ += fmt::format("<{}", tag);
  for (const Attribute& attribute : attributes) {
    text_ += fmt::format(" {}=\"{}\"", attribute.name, Escaped(attribute.value));
  }
}

void Markup::Open(const char* tag, const Attributes& attributes) {
  Begin(tag, attributes);
  text_ += ">";
  open_.push_back(tag);
}

void Markup::Close() {
  TROUPE_CHECK(!open_.empty(), "no element is open");
  text_ += fmt::format("</{}>\n", open_.back());
  open_.pop_back();
}

void Markup::Text(std::string_view text) { text_ += Escaped(text); }

void Markup::Element(const char* tag, const Attributes& attributes, std::string_view text) {
  Open(tag, attributes);
  Text(text);
  Close();
}

void Markup::Empty(const char* tag, const Attributes& attributes) {
  Begin(tag, attributes);
  text_ += "/>\n";
}

void Markup::Constant(const char* constant) { text_ += constant; }

const std::string& Markup::text() const {
  TROUPE_CHECK(open_.empty(), "<{}> has not ended", open_.back());
  return text_;
}

std::string Coordinate(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string Figure(double value) { return fmt::format("{:.4g}", value); }

}  // namespace troupe
