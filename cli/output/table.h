// A table of text: columns that are as wide as their widest cell, so that none moves from row to
// row. Where a terminal is narrower, columns become narrower, move below their rows or are left
// out. Pure.
#ifndef TROUPE_CLI_OUTPUT_TABLE_H_
#define TROUPE_CLI_OUTPUT_TABLE_H_

#include <string>
#include <utility>
#include <vector>

#include "cli/output/colour.h"
#include "cli/output/text_style.h"

namespace troupe {

struct TableCell {
  std::string text;  // shown as PrintableLine does
  Colour colour = Colour::kNone;
};

class Table {
 public:
  enum class Align { kLeft, kRight };
  // The treatment of a column of a table that is too wide.
  enum class Narrow {
    kStays,
    kShortened,  // title and cells lose their middle, until they have `least` columns
    kBelow,      // its cells are in lines below their rows, each with the title
    kLeftOut,
  };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    Narrow narrow = Narrow::kStays;
    size_t least = 0;  // for kShortened
    // Columns of the least importance go first. 0: it does not go; a kShortened one with another
    // importance is left out at last. REQUIRES: not 0 for kBelow and kLeftOut.
    int importance = 0;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: one cell for each column.
  void AddRow(std::vector<TableCell> cells);
  // Adds an indented line below the last row. It does not count for the widths.
  void AddLine(const std::string& text);

  // Returns the titles, the rows and the lines, each with a newline and without spaces at its end.
  // Columns without a text in any row are left out. From a table that is wider than style.columns,
  // columns go until it fits with shortened cells; lines are broken.
  std::string Text(const TextStyle& style) const;

 private:
  struct Row {
    std::vector<TableCell> cells;  // empty: `line` is the row
    std::string line;
  };
  struct Layout {
    std::vector<size_t> widths;  // by column; 0: it is not in the rows
    std::vector<bool> is_below;
  };

  Layout NaturalLayout() const;
  // Makes `layout` fit into `columns`, as far as that is possible.
  void Fit(size_t columns, Layout* layout) const;
  std::string RowText(const std::vector<TableCell>& cells, const Layout& layout,
                      const TextStyle& style) const;
  // Returns the line with the cells of the columns that are below; empty if there are none.
  std::string BelowText(const std::vector<TableCell>& cells, const Layout& layout,
                        const TextStyle& style) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_TABLE_H_
