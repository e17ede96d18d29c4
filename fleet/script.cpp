#include "fleet/script.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::fleet {

namespace {

constexpr std::string_view k_script_mark = "@sharefs ";

} // namespace

const std::string_view k_script_functions = R"sh(
say() { printf "@sharefs %s %s\n" "$1" "$(printf %s "$2" | tr "\n" " ")"; }
no() { say failed "$1"; exit 1; }
end_well() { say changed "$1"; say end ok; }
)sh";

std::string assign(std::string_view name, const std::string& value) {
  return fmt::format("{}={}\n", name, single_quote(value));
}

std::vector<std::pair<std::string, std::string>> parse_reports(std::string_view out) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const auto& line : split_lines(out)) {
    const auto mark = line.rfind(k_script_mark);
    if (mark == std::string::npos)
      continue;
    const auto text = line.substr(mark + k_script_mark.size());
    const auto space = std::min(text.find(' '), text.size());
    lines.emplace_back(text.substr(0, space), to_utf8(trim(std::string_view(text).substr(space))));
  }
  return lines;
}

Outcome script_outcome(const Node& node, std::string_view out, const Ended& ended) {
  std::string changed, failure, pending;
  bool is_whole = false;
  for (const auto& [key, value] : parse_reports(out)) {
    if (key == "changed")
      changed = value;
    else if (key == "failed")
      failure = value;
    else if (key == "pending")
      pending = value;
    is_whole = is_whole || key == "end";
  }
  if (!is_whole && failure.empty())
    return outcome_of(node, {}, ended);
  Outcome outcome{.node = node.name};
  outcome.state = !failure.empty()   ? State::failed
                  : !pending.empty() ? State::pending
                  : changed.empty()  ? State::ok
                                     : State::changed;
  outcome.why = !failure.empty() ? failure : !pending.empty() ? pending : changed;
  return outcome;
}

} // namespace sharefs::fleet
