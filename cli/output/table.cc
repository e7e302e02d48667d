#include "cli/output/table.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/check.h"
#include "base/text/printable.h"
#include "base/text/wrapped.h"

namespace troupe {
namespace {

constexpr size_t kGapColumns = 2;

// Returns an indented line, broken into lines where it is too wide.
std::string LineBelow(const std::string& text, size_t columns) {
  const size_t room = columns - std::min(columns, kGapColumns);
  return "  " + Wrapped(text, room, "    ", LongWords::kBroken) + "\n";
}

// Returns the width of a row whose columns have these widths, 0 for one that is not there.
size_t TotalWidth(const std::vector<size_t>& widths) {
  size_t total = 0;
  for (const size_t width : widths) total += width == 0 ? 0 : width + kGapColumns;
  return total - std::min(total, kGapColumns);
}

std::string LowerCase(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

void Table::AddRow(std::vector<TableCell> cells) {
  TROUPE_CHECK(cells.size() == columns_.size(), "{} cells for {} columns", cells.size(),
               columns_.size());
  for (TableCell& cell : cells) cell.text = PrintableLine(cell.text);
  rows_.push_back({std::move(cells), ""});
}

void Table::AddLine(const std::string& text) { rows_.push_back({{}, PrintableLine(text)}); }

Table::Layout Table::NaturalLayout() const {
  Layout layout{std::vector<size_t>(columns_.size()), std::vector<bool>(columns_.size())};
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t& width = layout.widths[i];
    for (const Row& row : rows_) {
      if (!row.cells.empty()) width = std::max(width, DisplayColumns(row.cells[i].text));
    }
    if (width > 0) width = std::max(width, DisplayColumns(columns_[i].title));
  }
  return layout;
}

void Table::Fit(size_t columns, Layout* layout) const {
  std::vector<size_t>& widths = layout->widths;
  // The widths that the columns have when they are as short as they may be.
  std::vector<size_t> least = widths;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (columns_[i].narrow == Narrow::kShortened) least[i] = std::min(widths[i], columns_[i].least);
  }
  while (TotalWidth(least) > columns) {
    std::optional<size_t> first;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] == 0 || columns_[i].importance == 0) continue;
      if (!first || columns_[i].importance < columns_[*first].importance) first = i;
    }
    if (!first) break;
    layout->is_below[*first] = columns_[*first].narrow == Narrow::kBelow;
    widths[*first] = least[*first] = 0;
  }
  while (TotalWidth(widths) > columns) {
    size_t* widest = nullptr;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] > least[i] && (widest == nullptr || widths[i] > *widest)) widest = &widths[i];
    }
    if (widest == nullptr) break;
    --*widest;
  }
}

std::string Table::RowText(const std::vector<TableCell>& cells, const Layout& layout,
                           const TextStyle& style) const {
  std::string text;
  bool is_first = true;
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t width = layout.widths[i];
    if (width == 0) continue;
    const std::string cell = MiddleShortened(cells[i].text, width);
    const std::string spaces(width - DisplayColumns(cell), ' ');
    const std::string shown = InColour(style.colours ? cells[i].colour : Colour::kNone, cell);
    if (!std::exchange(is_first, false)) text.append(kGapColumns, ' ');
    text += columns_[i].align == Align::kRight ? spaces + shown : shown + spaces;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string Table::BelowText(const std::vector<TableCell>& cells, const Layout& layout,
                             const TextStyle& style) const {
  std::string text;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!layout.is_below[i] || cells[i].text.empty()) continue;
    if (!text.empty()) text += "; ";
    text += LowerCase(columns_[i].title) + ": " + cells[i].text;
  }
  return text.empty() ? "" : LineBelow(text, style.columns);
}

std::string Table::Text(const TextStyle& style) const {
  Layout layout = NaturalLayout();
  Fit(style.columns, &layout);
  std::vector<TableCell> titles;
  for (size_t i = 0; i < columns_.size(); ++i)
    titles.push_back({layout.widths[i] == 0 ? "" : columns_[i].title});
  std::string text = RowText(titles, layout, style);
  for (const Row& row : rows_) {
    if (row.cells.empty()) {
      text += LineBelow(row.line, style.columns);
    } else {
      text += RowText(row.cells, layout, style) + BelowText(row.cells, layout, style);
    }
  }
  return text;
}

}  // namespace troupe
