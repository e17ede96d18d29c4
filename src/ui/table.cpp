#include "ui/table.hpp"

#include "base/text.hpp"
#include "base/visible.hpp"
#include "ui/paint.hpp"

#include <clocale>
#include <cstdlib>
#include <libsmartcols.h>
#include <memory>

namespace sharefs::ui {

namespace {

/// libsmartcols counts columns by the thread's locale; sharefs itself stays in the "C" locale.
class Utf8Scope {
 public:
  Utf8Scope() : m_locale(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (m_locale != nullptr)
      m_before = ::uselocale(m_locale);
  }
  ~Utf8Scope() {
    if (m_locale == nullptr)
      return;
    ::uselocale(m_before);
    ::freelocale(m_locale);
  }
  Utf8Scope(const Utf8Scope&) = delete;
  Utf8Scope& operator=(const Utf8Scope&) = delete;

 private:
  locale_t m_locale;
  locale_t m_before = nullptr;
};

struct UnrefTable {
  void operator()(libscols_table* table) const { scols_unref_table(table); }
};
struct Free {
  void operator()(char* text) const {
    std::free(text);
  } // NOLINT(cppcoreguidelines-no-malloc): libsmartcols allocated it
};

/// libsmartcols pads the last column; nobody wants the blanks in a log or a clipboard.
std::string without_trailing_blanks(std::string_view text) {
  std::string out;
  for (const auto& line : split_lines(text)) {
    const auto end = line.find_last_not_of(' ');
    out += std::string_view(line).substr(0, end == std::string::npos ? 0 : end + 1);
    out += '\n';
  }
  return out;
}

} // namespace

std::string Table::render(const ConsoleOptions& options) const {
  const Utf8Scope utf8;
  const std::unique_ptr<libscols_table, UnrefTable> table(scols_new_table());
  if (!table)
    return "";
  const bool colour = options.colour && (options.out_terminal || options.force_colour);
  scols_table_enable_colors(table.get(), colour ? 1 : 0);
  scols_table_enable_noencoding(table.get(), 1); // escaped below, by our own rules
  scols_table_set_termforce(table.get(), options.out_terminal ? SCOLS_TERMFORCE_ALWAYS : SCOLS_TERMFORCE_NEVER);
  scols_table_set_termwidth(table.get(), static_cast<std::size_t>(options.width > 0 ? options.width : 80));
  for (const auto& column : m_columns) {
    int flags = column.right ? SCOLS_FL_RIGHT : 0;
    if (column.truncate && options.out_terminal)
      flags |= SCOLS_FL_TRUNC;
    scols_table_new_column(table.get(), visible(column.name).c_str(), 0, flags);
  }
  for (const auto& row : m_rows) {
    libscols_line* line = scols_table_new_line(table.get(), nullptr);
    for (std::size_t i = 0; line != nullptr && i < row.size() && i < m_columns.size(); ++i) {
      scols_line_set_data(line, i, visible(row[i].text).c_str());
      if (colour && row[i].colour != Colour::none)
        scols_cell_set_color(scols_line_get_cell(line, i), std::string(sequence_of(row[i].colour)).c_str());
    }
  }
  char* text = nullptr;
  scols_print_table_to_string(table.get(), &text);
  const std::unique_ptr<char, Free> owned(text);
  return owned ? without_trailing_blanks(owned.get()) : "";
}

} // namespace sharefs::ui
