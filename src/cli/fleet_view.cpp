// Answers of many nodes, printed for a person: equal answers are printed once.
#include "cli/on_nodes.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <map>

namespace sharefs::cli {

namespace {

using fleet::Outcome;
using fleet::State;
/// Collects the nodes of each key; the keys stay in the order of their first node.
template <class Key> class Grouped {
 public:
  void add(const Key& key, const std::string& node) {
    const auto [found, fresh] = m_places.try_emplace(key, m_groups.size());
    if (fresh)
      m_groups.emplace_back(key, std::vector<std::string>{});
    m_groups[found->second].second.push_back(node);
  }
  [[nodiscard]] const std::vector<std::pair<Key, std::vector<std::string>>>& groups() const { return m_groups; }

 private:
  std::map<Key, std::size_t> m_places;
  std::vector<std::pair<Key, std::vector<std::string>>> m_groups;
};

/// Summarizes the document of a command: for each list in it, the number of elements by state.
std::string contents_of(const Json& document) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : document.items()) {
    if (!value.is_array() || value.empty() || name == "results" || name == "diagnoses" || name == "parts")
      continue;
    std::map<std::string, std::size_t> states;
    for (const auto& element : value)
      if (const auto state = text_in(element, "state"); !state.empty())
        ++states[state];
    std::vector<std::string> counts;
    for (const auto& [state, count] : states)
      counts.push_back(fmt::format("{} {}", count, state));
    texts.push_back(fmt::format("{}: {}", name, counts.empty() ? std::to_string(value.size()) : join(counts, ", ")));
  }
  return join(texts, "; ");
}

/// Replaces NODE in the hint by the name of the node.
std::string hint_for(std::string hint, const std::string& node) {
  constexpr std::string_view k_node = "NODE";
  for (auto at = hint.find(k_node); at != std::string::npos; at = hint.find(k_node, at + node.size()))
    hint.replace(at, k_node.size(), node);
  return hint;
}

ui::Colour colour_of(State state) {
  if (state == State::ok || state == State::changed)
    return ui::Colour::green;
  return state == State::pending || state == State::not_tried ? ui::Colour::yellow : ui::Colour::red;
}

Severity severity_of(std::string_view name) {
  return name == "error" ? Severity::error : name == "warning" ? Severity::warning : Severity::info;
}

/// Returns the findings of all nodes, each once, with the names of its nodes.
Diagnoses findings_of(const std::vector<Outcome>& outcomes) {
  Grouped<Diagnosis> grouped;
  for (const auto& outcome : outcomes)
    for (const auto& one : member(outcome.document, "diagnoses"))
      if (one.is_object())
        grouped.add({severity_of(text_in(one, "severity")), text_in(one, "code"), text_in(one, "subject"),
                     text_in(one, "message"), text_in(one, "hint"), text_in(one, "fix")},
                    outcome.node);
  Diagnoses all;
  for (auto [one, nodes] : grouped.groups()) {
    one.subject = fleet::fold(nodes) + (one.subject.empty() ? "" : ": " + one.subject);
    all.push_back(std::move(one));
  }
  std::ranges::stable_sort(all, std::greater(), &Diagnosis::severity);
  return all;
}

} // namespace

void show_plans(Context& context, const std::vector<Outcome>& outcomes) {
  struct Lines {
    std::vector<std::string> notes, steps;
    auto operator<=>(const Lines&) const = default;
  };
  Grouped<Lines> plans;
  for (const auto& outcome : outcomes) {
    const auto& plan = member(outcome.document, "plan");
    if (outcome.state != State::pending || !plan.is_object())
      continue;
    Lines lines;
    for (const auto& note : member(plan, "notes"))
      if (note.is_string())
        lines.notes.push_back("  note: " + note.get<std::string>());
    for (const auto& step : member(plan, "steps")) {
      const auto& why = text_in(step, "why");
      if (context.flags.verbose || member(step, "bookkeeping") != true)
        lines.steps.push_back(fmt::format(
            "  {}{}{}", text_in(step, "description"), why.empty() ? "" : "  (" + why + ")",
            member(step, "undoable") == false && member(step, "stays") != true ? "  (cannot be undone)" : ""));
    }
    plans.add(lines, outcome.node);
  }
  for (const auto& [lines, nodes] : plans.groups()) {
    context.console.proposal(fmt::format("{}: {}", fleet::fold(nodes), count_of(lines.steps.size(), "step")));
    for (const auto* each : {&lines.notes, &lines.steps})
      for (const auto& line : *each)
        context.console.proposal(line);
  }
}

void show_outcomes(Context& context, const std::vector<Outcome>& outcomes) {
  Grouped<std::tuple<State, std::string, std::string>> rows;
  auto nodes = Json::array();
  for (const auto& outcome : outcomes) {
    const auto what = !outcome.why.empty()                                         ? outcome.why
                      : outcome.state == State::ok && outcome.document.is_object() ? contents_of(outcome.document)
                                                                                   : "";
    rows.add({outcome.state, what, outcome.hint}, outcome.node);
    nodes.push_back(to_json(outcome));
    nodes.back()["hint"] = hint_for(outcome.hint, outcome.node);
  }
  context.envelope.fields["nodes"] = std::move(nodes);
  auto groups = rows.groups();
  std::ranges::stable_sort(groups,
                           [](const auto& a, const auto& b) { return std::get<0>(a.first) < std::get<0>(b.first); });
  ui::Table table({{"NODES"}, {"COUNT", true}, {"STATE"}, {"WHAT", false, true}});
  for (const auto& [row, names] : groups)
    table.add({{fleet::fold(names)},
               {std::to_string(names.size())},
               {to_string(std::get<0>(row)), colour_of(std::get<0>(row))},
               {std::get<1>(row)}});
  context.console.show(table);
  for (const auto& [row, names] : groups)
    if (const auto& hint = std::get<2>(row); !hint.empty() && !is_good(std::get<0>(row)))
      context.console.message(
          fmt::format("{}: {}", fleet::fold(names), names.size() == 1 ? hint_for(hint, names.front()) : hint));
  if (!context.flags.json)
    context.console.diagnoses(findings_of(outcomes));
}

} // namespace sharefs::cli
