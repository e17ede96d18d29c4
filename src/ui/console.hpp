#pragma once
// Console: all that a person sees. stdout is data; stderr is messages, progress and prompts.
#include "base/diagnosis.hpp"
#include "base/result.hpp"
#include "plan/plan.hpp"
#include "ui/progress.hpp"

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::ui {

enum class Colour { none, red, green, yellow, blue, bold, dim };

struct ConsoleOptions {
  bool json = false;        ///< stdout carries one JSON document; tables and plans are not printed
  bool quiet = false;       ///< only warnings and errors on stderr
  bool errors_only = false; ///< no warnings either, because another process of the same job prints them
  bool out_terminal = false, err_terminal = false, in_terminal = false;
  bool colour = false;       ///< already decided: a terminal, no NO_COLOR, TERM not dumb
  int width = 80;            ///< columns of the terminal
  bool force_colour = false; ///< CLICOLOR_FORCE: colour also where there is no terminal
  bool verbose = false;      ///< also print details that help to find a fault

  /// Returns whether colour is used on a stream, which is a `terminal` or not.
  [[nodiscard]] bool paints(bool terminal) const { return colour && (terminal || force_colour); }
};

/// Reads isatty, NO_COLOR, CLICOLOR_FORCE, TERM and the window size. In terminal.cpp.
ConsoleOptions detect_console();

class Table;

class Console {
 public:
  Console(std::istream& in, std::ostream& out, std::ostream& err, ConsoleOptions options);

  [[nodiscard]] const ConsoleOptions& options() const { return m_options; }
  void set_flags(bool json, bool quiet, bool verbose = false) {
    m_options.json = json;
    m_options.quiet = quiet;
    m_options.verbose = verbose;
  }
  void set_errors_only() { m_options.quiet = m_options.errors_only = true; }

  void message(std::string_view text); ///< a line on stderr; nothing when quiet
  /// A line that says what the next question asks for; when quiet it comes with the question.
  void proposal(std::string_view text);
  void warning(std::string_view text, std::string_view hint = {});
  void error(const Error& error);             ///< error:, context, hint:
  void diagnoses(const Diagnoses& diagnoses); ///< error/warning/note, code, subject; hint and fix on lines of their own

  /// Prints the plan for a person: notes, groups, one line per step with its reason, diffs, and a mark at steps that
  /// cannot be undone. It goes to stderr; to stdout where the plan is the output (`--dry-run`), and then also with
  /// --quiet.
  void show(const plan::Plan& plan, bool is_data = false);
  /// Prints one line per failed step, then a summary: "3 done, 1 failed, 2 skipped; undo with `sharefs undo ID`".
  /// `undo` is the command in it.
  void show(const plan::Plan& plan, const plan::Report& report, std::string_view undo);

  /// Prints data on stdout as it is; nothing beside a JSON document.
  void print(std::string_view text);
  /// Prints the table on stdout. An empty table is not printed, and none beside a JSON document.
  void show(const Table& table);

  /// Asks on the terminal; the default is No. Returns false at once without a terminal; callers check in_terminal
  /// first.
  bool confirm(std::string_view question);

  StatusLine& status_line() { return m_err; }

 private:
  std::istream& m_in;
  std::ostream& m_out;
  StatusLine m_err; ///< messages and the progress line share stderr
  ConsoleOptions m_options;
  std::string m_unseen; ///< what was not shown because of --quiet: confirm() shows it first
};

} // namespace sharefs::ui
