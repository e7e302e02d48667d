#include "base/text/manual_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace troupe {
namespace {

// Returns `text` such that roff shows it as it is. Without an escape, some characters would become
// others that look better in print, and a dot at the beginning of a line would be a request.
std::string RoffText(std::string_view text) {
  std::string roff;
  for (const char c : text) {
    const bool begins_line = roff.empty() || roff.back() == '\n';
    switch (c) {
      case '\\':
        roff += "\\e";
        break;
      case '-':
        roff += "\\-";
        break;
      case '\'':
        roff += "\\(aq";
        break;
      case '"':
        roff += "\\(dq";
        break;
      case '`':
        roff += "\\(ga";
        break;
      case '^':
        roff += "\\(ha";
        break;
      case '~':
        roff += "\\(ti";
        break;
      default:
        if (c == '.' && begins_line) roff += "\\&";
        roff += c;
    }
  }
  return roff;
}

// Returns "TROUPE-SUBMIT" for "troupe submit".
std::string TitleOf(std::string_view name) {
  std::string title(name);
  for (char& c : title)
    c = c == ' ' ? '-' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return title;
}

}  // namespace

ManualPage::ManualPage(std::string_view name, std::string_view version, std::string_view summary) {
  std::string page_name(name);
  std::ranges::replace(page_name, ' ', '-');
  if (summary.ends_with('.')) summary.remove_suffix(1);
  // Words are not hyphenated, and lines end where they do: flags stay whole.
  roff_ = fmt::format(
      ".TH \"{}\" 1 \"\" \"troupe {}\" \"Troupe\"\n.nh\n.ad l\n.SH NAME\n{} \\- {}\n",
      RoffText(TitleOf(name)), RoffText(version), RoffText(page_name), RoffText(summary));
}

void ManualPage::AddSection(std::string_view title) {
  roff_ += fmt::format(".SH \"{}\"\n", RoffText(title));
}

void ManualPage::AddSubsection(std::string_view title) {
  roff_ += fmt::format(".SS \"{}\"\n", RoffText(title));
}

void ManualPage::AddText(std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find("\n\n", begin), text.size());
    roff_ += fmt::format(".PP\n{}\n", RoffText(text.substr(begin, end - begin)));
    begin = std::min(text.find_first_not_of('\n', end), text.size());
  }
}

void ManualPage::AddLines(std::string_view lines) {
  roff_ += fmt::format(".PP\n.nf\n{}\n.fi\n", RoffText(lines));
}

void ManualPage::AddEntry(std::string_view term, std::string_view value, std::string_view text) {
  roff_ += fmt::format(".TP\n\\fB{}\\fR", RoffText(term));
  if (!value.empty()) roff_ += fmt::format(" \\fI{}\\fR", RoffText(value));
  roff_ += fmt::format("\n{}\n", RoffText(text));
}

}  // namespace troupe
