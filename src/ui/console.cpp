#include "ui/console.hpp"

#include "base/text.hpp"
#include "base/visible.hpp"
#include "sys/process/interrupt.hpp"
#include "ui/plan_view.hpp"
#include "ui/table.hpp"
#include "ui/terminal.hpp"

#include <array>
#include <fmt/format.h>
#include <iostream>
#include <unistd.h>

namespace sharefs::ui {

namespace {

/// Returns `word: text`, with only the word coloured; "" if there is no text.
std::string labelled(Colour colour, std::string_view word, std::string_view text, bool on) {
  return text.empty() ? "" : fmt::format("{}: {}\n", painted(colour, word, on), visible(text));
}

struct Label {
  Colour colour;
  std::string_view word;
};
constexpr std::array<Label, 3> k_labels{
    {{Colour::blue, "note"}, {Colour::yellow, "warning"}, {Colour::red, "error"}}}; ///< by severity

} // namespace

Console::Console(std::istream& in, std::ostream& out, std::ostream& err, ConsoleOptions options)
    : m_in(in), m_out(out), m_err(err), m_options(options) {}

void Console::message(std::string_view text) {
  if (!m_options.quiet && !text.empty())
    // The beginning stays, because a message may be indented.
    m_err.print(visible(text.substr(0, text.find_last_not_of(" \t\r\n") + 1)) + "\n");
}

void Console::proposal(std::string_view text) {
  message(text);
  if (m_options.quiet)
    m_unseen += visible(text) + "\n";
}

void Console::warning(std::string_view text, std::string_view hint) {
  if (m_options.errors_only)
    return;
  const bool on = m_options.paints(m_options.err_terminal);
  m_err.print(labelled(Colour::yellow, "warning", text, on) + labelled(Colour::green, "hint", hint, on));
}

void Console::error(const Error& error) {
  const bool on = m_options.paints(m_options.err_terminal);
  m_out << std::flush; // so that the order of both streams is right in a common log
  m_err.print(labelled(Colour::red, "error", error.message, on) + with_line_end(visible_lines(error.context)) +
              labelled(Colour::green, "hint", error.hint, on));
}

void Console::diagnoses(const Diagnoses& diagnoses) {
  const bool on = m_options.paints(m_options.err_terminal);
  std::string out;
  for (const auto& diagnosis : diagnoses) {
    if ((m_options.quiet && diagnosis.severity == Severity::info) ||
        (m_options.errors_only && diagnosis.severity != Severity::error))
      continue;
    const auto [colour, word] = k_labels.at(static_cast<std::size_t>(diagnosis.severity));
    auto text = diagnosis.subject.empty() ? diagnosis.message : diagnosis.subject + ": " + diagnosis.message;
    if (!diagnosis.code.empty())
      text += " [" + diagnosis.code + "]";
    out += labelled(colour, word, text, on) + labelled(Colour::green, "hint", diagnosis.hint, on);
    if (!diagnosis.fix.empty())
      out += labelled(Colour::green, "hint", "run `" + diagnosis.fix + "`", on);
  }
  if (!out.empty()) {
    m_out << std::flush;
    m_err.print(out);
  }
}

void Console::show(const plan::Plan& plan, bool is_data) {
  if (m_options.json)
    return;
  auto text =
      plan_text(plan, m_options.paints(is_data ? m_options.out_terminal : m_options.err_terminal), m_options.verbose);
  if (is_data)
    m_out << text << std::flush; // stdout comes before the messages that follow on stderr
  else if (m_options.quiet)
    m_unseen = std::move(text);
  else if (!text.empty())
    m_err.print(text);
}

void Console::show(const plan::Plan& plan, const plan::Report& report, std::string_view undo) {
  if (m_options.json)
    return;
  if (report.error && report.ok())
    warning(report.error->message, report.error->hint);
  else if (report.error)
    error(*report.error);
  for (const auto& result : report.results) {
    if (!result.error || result.step >= plan.steps.size())
      continue;
    Error shown = *result.error;
    const auto& action = plan.steps[result.step].action;
    const auto* mount = std::get_if<plan::Mount>(&action); // its message names the server and the directory already
    const auto paths = plan::touched_paths(action);
    if (paths.empty() || shown.message.find(paths.front()) == std::string::npos)
      shown.message = (mount == nullptr ? plan::describe(action) : mount->target) + ": " + shown.message;
    error(shown);
  }
  const auto summary = summary_text(plan, report, undo, m_options.verbose);
  if (report.interrupted)
    warning(summary);
  else
    message(summary);
}

void Console::print(std::string_view text) {
  if (!m_options.json)
    m_out << text;
}

void Console::show(const Table& table) {
  if (!m_options.json && !table.empty())
    m_out << table.render(m_options) << std::flush;
}

bool Console::confirm(std::string_view question) {
  if (!m_options.in_terminal)
    return false;
  m_out << std::flush;
  m_err.print(m_unseen + visible(question) + " [y/N] ");
  m_unseen.clear();
  std::string line;
  // Getline would go on reading after Ctrl-C.
  const bool typed = &m_in != &std::cin || sys::wait_for_input(STDIN_FILENO);
  if (!typed || !std::getline(m_in, line)) {
    m_err.print("\n"); // at the end of input the cursor is still behind the prompt
    return false;
  }
  const auto answer = trim(line);
  return answer == "y" || answer == "Y" || answer == "yes" || answer == "Yes" || answer == "YES";
}

} // namespace sharefs::ui
