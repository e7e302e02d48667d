// A table of text: columns that are as wide as their widest cell, so that none moves from row to
// row. Pure.
#ifndef TROUPE_CLI_OUTPUT_TABLE_H_
#define TROUPE_CLI_OUTPUT_TABLE_H_

#include <string>
#include <vector>

#include "cli/output/colour.h"

namespace troupe {

struct TableCell {
  std::string text;  // shown as PrintableLine does
  Colour colour = Colour::kNone;
};

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // REQUIRES: one cell for each column.
  void AddRow(std::vector<TableCell> cells);
  // Adds an indented line below the last row. It does not count for the widths.
  void AddLine(const std::string& text);

  // Returns the titles, the rows and the lines, each with a newline and without spaces at its end.
  // Columns without a text in any row are left out.
  std::string Text(bool colours) const;

 private:
  struct Row {
    std::vector<TableCell> cells;  // empty: `line` is the row
    std::string line;
  };

  // Returns the width of each column; 0: it is left out.
  std::vector<size_t> Widths() const;
  std::string RowText(const std::vector<TableCell>& cells, const std::vector<size_t>& widths,
                      bool colours) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_TABLE_H_
