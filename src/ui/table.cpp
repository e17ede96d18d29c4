#include "ui/table.hpp"

#include "base/visible.hpp"
#include "ui/terminal.hpp"

#include <algorithm>

namespace sharefs::ui {

namespace {

constexpr std::size_t k_narrowest = 8; ///< a column is not cut below this width

struct Layout {
  const Table::Column* column = nullptr;
  std::size_t index = 0; ///< of the cell in its row
  std::size_t width = 0;
  bool empty = true; ///< all cells are `-` or empty
};

std::size_t total_width(const std::vector<Layout>& columns) {
  std::size_t total = columns.empty() ? 0 : columns.size() - 1;
  for (const auto& column : columns)
    total += column.width;
  return total;
}

/// Cuts the widest column, one step at a time, until the table fits: first the columns marked `truncate`, then all but
/// numbers.
void fit(std::vector<Layout>& columns, std::size_t width) {
  for (const bool marked : {true, false})
    while (total_width(columns) > width) {
      const auto weight = [marked](const Layout& one) {
        return (marked ? one.column->truncate : !one.column->right) ? one.width : 0;
      };
      const auto widest = std::ranges::max_element(columns, {}, weight);
      if (weight(*widest) <= k_narrowest)
        break;
      --widest->width;
    }
}

} // namespace

void Table::add(std::vector<Cell> row) {
  for (auto& cell : row) {
    if (find_invisible(cell.text))
      cell.text = visible(cell.text);
    cell.width = display_width(cell.text);
  }
  m_rows.push_back(std::move(row));
}

std::string Table::render(const ConsoleOptions& options) const {
  std::vector<Layout> columns;
  for (std::size_t i = 0; i < m_columns.size(); ++i) {
    Layout layout{&m_columns[i], i, display_width(m_columns[i].name)};
    for (const auto& row : m_rows)
      if (i < row.size()) {
        layout.width = std::max(layout.width, row[i].width);
        layout.empty = layout.empty && (row[i].text.empty() || row[i].text == "-");
      }
    // A person does not need a column without values; a script expects every column.
    if (!options.out_terminal || i == 0 || !layout.empty || m_rows.empty())
      columns.push_back(layout);
  }
  if (options.out_terminal && !columns.empty())
    fit(columns, static_cast<std::size_t>(options.width > 0 ? options.width : 80));

  const bool colour = options.paints(options.out_terminal);
  std::string out;
  const Cell none;
  const auto add_line = [&](const std::vector<Cell>& row) {
    std::size_t pending = 0; // blanks are written only if another cell follows
    for (const auto& column : columns) {
      const Cell& cell = column.index < row.size() ? row[column.index] : none;
      const auto blanks = column.width - std::min(column.width, cell.width);
      if (!cell.text.empty())
        out.append(pending + (column.column->right ? blanks : 0), ' ');
      if (!cell.text.empty() && (colour || cell.width > column.width))
        out += painted(cell.colour, fit_width(cell.text, column.width), colour);
      else
        out += cell.text; // add() has made it visible
      pending = (cell.text.empty() ? pending + column.width : column.column->right ? 0 : blanks) + 1;
    }
    out += '\n';
  };
  std::vector<Cell> names;
  for (const auto& column : m_columns)
    names.push_back({column.name, Colour::none, display_width(column.name)});
  add_line(names);
  for (const auto& row : m_rows)
    add_line(row);
  return out;
}

} // namespace sharefs::ui
