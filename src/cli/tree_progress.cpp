#include "cli/tree_progress.hpp"

#include "base/text.hpp"

#include <nlohmann/json.hpp>

namespace sharefs::cli {

TreeProgress::TreeProgress(Context& context, std::string what)
    : m_context(context), m_what(std::move(what)), m_line(context.console, m_what) {}

tree::OnProgress TreeProgress::on() {
  return [this](const tree::Progress& now) {
    m_line.at(now.text());
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
