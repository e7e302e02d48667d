// A page of HTML that is complete in itself: it loads nothing and runs no script. Pure.
#ifndef TROUPE_REPORT_PAGE_H_
#define TROUPE_REPORT_PAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "report/markup.h"

namespace troupe {

using TextRows = std::vector<std::pair<std::string, std::string>>;

// Begins the page; `subtitle` may be empty.
void OpenPage(const std::string& title, const std::string& subtitle, Markup* page);
// Ends what OpenPage began.
void ClosePage(Markup* page);

// Returns the style sheet of the elements that the functions of report/ draw, which use its classes
// and no attribute "style".
const std::string& PageStyle();

// Begins a part of the page. `id` is a constant of lower-case letters and hyphens that no other
// element of the page has; it stays the same from one version of a page to the next.
void OpenSection(const char* id, const char* title, Markup* page);
void CloseSection(Markup* page);

// A few figures at the top of the page, each with its name.
void DrawFacts(const TextRows& facts, Markup* page);
// A table of two columns; on a narrow screen the first one is above the second.
void DrawRows(const TextRows& rows, Markup* page);
// A list of paragraphs; nothing if there are none.
template <typename Lines>
void DrawLines(const Lines& lines, Markup* page) {
  for (const auto& line : lines) page->Element("p", {}, line);
}

// A note that readers should not miss: a headline and a list.
template <typename Lines>
void DrawBanner(const std::string& headline, const Lines& lines, Markup* page) {
  page->Open("div", {{"class", "banner"}, {"role", "note"}});
  page->Element("strong", {}, headline);
  page->Open("ul");
  for (const auto& line : lines) page->Element("li", {}, line);
  page->Close();
  page->Close();
}

}  // namespace troupe

#endif  // TROUPE_REPORT_PAGE_H_
