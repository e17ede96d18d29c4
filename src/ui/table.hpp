#pragma once
#include "ui/console.hpp"

#include <string>
#include <vector>

namespace sharefs::ui {

struct Cell {
  std::string text;
  Colour colour = Colour::none;
  std::size_t width = 0; ///< in columns; Table::add() fills it in
};

/// A table whose columns are as wide as their cells. On a terminal, columns without a value in any row are left out,
/// and cells that do not fit the width are cut, with `...`; other outputs get everything. Control characters in cells
/// are escaped.
class Table {
 public:
  struct Column {
    std::string name;
    bool right = false;    ///< numbers
    bool truncate = false; ///< may be cut to fit the width
  };
  explicit Table(std::vector<Column> columns) : m_columns(std::move(columns)) {}
  void add(std::vector<Cell> row);
  [[nodiscard]] bool empty() const { return m_rows.empty(); }
  [[nodiscard]] std::string render(const ConsoleOptions& options) const;

 private:
  std::vector<Column> m_columns;
  std::vector<std::vector<Cell>> m_rows;
};

} // namespace sharefs::ui
