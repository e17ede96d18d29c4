#include "fleet/script.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace sharefs::fleet {

extern const char k_report_script[]; // scripts/report.sh

namespace {

constexpr std::string_view k_script_mark = "@sharefs ";

} // namespace

std::string script_of(const std::vector<std::pair<std::string_view, std::string>>& variables, std::string_view body) {
  std::string text = k_report_script;
  for (const auto& [name, value] : variables)
    text += fmt::format("{}={}\n", name, single_quote(value));
  return text.append(body);
}

Reports parse_reports(std::string_view out) {
  Reports reports;
  for (const auto& line : split_lines(out)) {
    const auto mark = line.rfind(k_script_mark);
    if (mark == std::string::npos)
      continue;
    const auto text = line.substr(mark + k_script_mark.size());
    const auto space = std::min(text.find(' '), text.size());
    reports[text.substr(0, space)].push_back(to_utf8(trim(std::string_view(text).substr(space))));
  }
  return reports;
}

std::string last_report(const Reports& reports, const std::string& key) {
  const auto found = reports.find(key);
  return found == reports.end() ? "" : found->second.back();
}

Outcome script_outcome(const Node& node, std::string_view out, const Ended& ended) {
  const auto reports = parse_reports(out);
  Outcome outcome{.node = node.name, .state = State::ok};
  for (const auto& [key, state] :
       {std::pair("failed", State::failed), std::pair("pending", State::pending), std::pair("changed", State::changed)})
    if (outcome.why.empty() && !last_report(reports, key).empty()) {
      outcome.state = state;
      outcome.why = last_report(reports, key);
    }
  const bool is_whole = reports.contains("end") || outcome.state == State::failed;
  return is_whole ? outcome : outcome_of(node, {}, ended);
}

} // namespace sharefs::fleet
