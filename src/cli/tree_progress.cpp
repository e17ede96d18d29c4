#include "cli/tree_progress.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sharefs::cli {

TreeProgress::TreeProgress(Context& context, std::string what)
    : m_context(context), m_what(std::move(what)), m_line(context.console, m_what.substr(0, m_what.find(' '))) {
  m_line.at(line({}));
}

/// The numbers come first: of a line that is too long for the terminal the path is cut off.
std::string TreeProgress::line(const std::string& numbers) const {
  const auto of = m_what.substr(std::min(m_what.find(' '), m_what.size() - 1) + 1);
  return numbers.empty() ? of : numbers + ": " + of;
}

tree::OnProgress TreeProgress::on() {
  return [this](const tree::Progress& now) {
    m_line.at(line(now.text()));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.took);
    if (!m_context.flags.json || seconds <= m_said)
      return;
    m_said = seconds;
    m_context.console.message(nlohmann::ordered_json{
        {"progress", to_utf8(m_what)},
        {"files", now.files},
        {"bytes", now.bytes},
        {"total_files", now.total_files},
        {"total_bytes", now.total_bytes},
        {"seconds",
         seconds.count()}}.dump());
  };
}

} // namespace sharefs::cli
