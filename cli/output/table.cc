#include "cli/output/table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text/printable.h"
#include "cli/output/text_columns.h"

namespace troupe {

void Table::AddRow(std::vector<TableCell> cells) {
  TROUPE_CHECK(cells.size() == columns_.size(), "{} cells for {} columns", cells.size(),
               columns_.size());
  for (TableCell& cell : cells) cell.text = PrintableLine(cell.text);
  rows_.push_back({std::move(cells), ""});
}

void Table::AddLine(const std::string& text) { rows_.push_back({{}, "  " + PrintableLine(text)}); }

std::vector<size_t> Table::Widths() const {
  std::vector<size_t> widths(columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    for (const Row& row : rows_) {
      if (!row.cells.empty()) widths[i] = std::max(widths[i], ColumnsOf(row.cells[i].text));
    }
    if (widths[i] > 0) widths[i] = std::max(widths[i], ColumnsOf(columns_[i].title));
  }
  return widths;
}

std::string Table::RowText(const std::vector<TableCell>& cells, const std::vector<size_t>& widths,
                           bool colours) const {
  std::string text;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (widths[i] == 0) continue;
    const std::string spaces(widths[i] - ColumnsOf(cells[i].text), ' ');
    const std::string shown = InColour(colours ? cells[i].colour : Colour::kNone, cells[i].text);
    if (!text.empty()) text += "  ";
    text += columns_[i].align == Align::kRight ? spaces + shown : shown + spaces;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string Table::Text(bool colours) const {
  const std::vector<size_t> widths = Widths();
  std::vector<TableCell> titles;
  for (size_t i = 0; i < columns_.size(); ++i)
    titles.push_back({widths[i] == 0 ? "" : columns_[i].title});
  std::string text = RowText(titles, widths, colours);
  for (const Row& row : rows_)
    text += row.cells.empty() ? row.line + "\n" : RowText(row.cells, widths, colours);
  return text;
}

}  // namespace troupe
