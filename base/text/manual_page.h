// A manual page, section 1, in the man macros of roff. Texts are shown as they are: no character of
// theirs is read as a request of roff. Not thread-safe.
#ifndef TROUPE_BASE_TEXT_MANUAL_PAGE_H_
#define TROUPE_BASE_TEXT_MANUAL_PAGE_H_

#include <string>
#include <string_view>

namespace troupe {

class ManualPage {
 public:
  // Begins the page of the program or command `name`, such as "troupe submit", with its NAME
  // section. `summary` is one paragraph.
  ManualPage(std::string_view name, std::string_view version, std::string_view summary);

  void AddSection(std::string_view title);     // "EXIT STATUS"
  void AddSubsection(std::string_view title);  // "submit JOB.yaml"
  // Adds paragraphs, which an empty line separates. Their lines are filled.
  void AddText(std::string_view text);
  // Adds lines that stay as they are.
  void AddLines(std::string_view lines);
  // Adds a term, such as "--workers", with the name of its value, if it has one, and its text.
  void AddEntry(std::string_view term, std::string_view value, std::string_view text);

  const std::string& roff() const { return roff_; }

 private:
  std::string roff_;
};

}  // namespace troupe

#endif  // TROUPE_BASE_TEXT_MANUAL_PAGE_H_
