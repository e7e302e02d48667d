// A page of HTML that is complete in itself: it loads nothing and runs no script. Pure.
#ifndef TROUPE_CLI_REPORT_PAGE_H_
#define TROUPE_CLI_REPORT_PAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "cli/report/markup.h"

namespace troupe {

using TextRows = std::vector<std::pair<std::string, std::string>>;

// Begins the page; `subtitle` may be empty.
void OpenPage(const std::string& title, const std::string& subtitle, Markup* page);
// Ends what OpenPage began.
void ClosePage(Markup* page);

void OpenSection(const char* title, Markup* page);
void CloseSection(Markup* page);

// A few figures at the top of the page, each with its name.
void DrawFacts(const TextRows& facts, Markup* page);
// A table of two columns.
void DrawRows(const TextRows& rows, Markup* page);
// A list of paragraphs; nothing if there are none.
template <typename Lines>
void DrawLines(const Lines& lines, Markup* page) {
  for (const auto& line : lines) page->Element("p", {}, line);
}

}  // namespace troupe

#endif  // TROUPE_CLI_REPORT_PAGE_H_
