#include "cachefix/run_plan.hpp"

#include "base/json_fields.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cachefix {
namespace {

using Json = nlohmann::ordered_json;

Json decision_json(const Decision& one) {
  Json json = json_of(one);
  if (one.is_change()) {
    json["kind"] = one.is_environment() ? "environment" : "argument";
    json["from"] = json_of(one.from);
    json["to"] = json_of(one.to);
    json["action"] = to_string(one.action);
    json["rule"] = one.rule;
  } else {
    json["value"] = to_utf8(one.from.value_or(""));
  }
  if (one.action == Action::guard)
    json["directory"] = json_of(one.to);
  return json;
}

/// Returns one line for people: `--cache_dir /share/c -> /var/cache/...: REASON`, or why something was left.
std::string describe_one(const Decision& decision) {
  const auto quoted = [](const std::optional<std::string>& text) { return text ? shell_quote(*text) : std::string(); };
  const std::string named = decision.flag + " " + quoted(decision.from);
  const std::string to = decision.to.value_or("");
  const std::string line = decision.action == Action::rewrite ? named + " -> " + quoted(to)
                           : decision.action == Action::guard ? named + " guarded, in " + decision.to.value_or("place")
                           : decision.action != Action::set   ? named + " unchanged"
                           : decision.variable                ? decision.flag + "=" + quoted(to) + " set"
                                                              : "`" + to + "` added";
  return to_utf8(line) + ": " + decision.reason;
}

} // namespace

Json document(const Argv& argv, const RunPlan& decision) {
  Json out{{"argv", json_of(argv)}, {"final_argv", json_of(decision.argv)}};
  if (!std::ranges::all_of(decision.argv, is_utf8))
    for (const std::string& word : decision.argv)
      out["final_argv_base64"].push_back(base64(word));
  out["chain"] = Json::array();
  for (const ChainLink& link : decision.chain)
    out["chain"].push_back({{"launcher", to_utf8(link.name)}, {"index", link.index}});
  out["script"] = decision.scripts.empty() ? Json(nullptr) : json_of(decision.scripts.front());
  if (decision.scripts.size() > 1)
    out["scripts"] = json_of(decision.scripts);
  for (const auto& [name, list] : {std::pair("changes", &decision.changes), std::pair("guarded", &decision.guarded),
                                   std::pair("kept", &decision.kept)}) {
    out[name] = Json::array();
    std::ranges::transform(*list, std::back_inserter(out[name]), decision_json);
  }
  Json set = Json::object();
  for (const auto& [name, value] : decision.set)
    set[to_utf8(name)] = to_utf8(value);
  out["environment"] = Json{{"set", std::move(set)}, {"unset", Json::array()}};
  return out;
}

std::string summary(const RunPlan& decided) {
  std::vector<std::string> parts;
  const auto others = [](std::size_t all) { return all > 1 ? fmt::format(" and {} more", all - 1) : std::string(); };
  Decisions guarded = decided.guarded;
  std::ranges::stable_sort(guarded, {}, &Decision::implied); // caches that the user named come first
  if (!guarded.empty() && !guarded.front().implied) {
    const Decision& first = guarded.front();
    parts.push_back(fmt::format("datasets of {} {}{} are built {}", first.flag, to_utf8(first.stands_for),
                                others(guarded.size()),
                                first.to ? "on this node (" + *first.to + ")" : std::string("there by one process")));
  }
  const auto number = decided.directories.size();
  if (number > 0) {
    const auto& [directory, shared] = *decided.directories.begin();
    parts.push_back(fmt::format("caches of {}{} on this node ({})", to_utf8(shared), others(number),
                                number == 1 ? directory : parent_path(directory)));
  }
  if (parts.empty() && std::ranges::find(decided.changes, "node", &Decision::rule) != decided.changes.end())
    parts.emplace_back("caches are decided about on the nodes");
  return join(parts, "; ");
}

std::vector<std::string> describe(const RunPlan& decided, bool explain) {
  const auto is_guard = [](const Decision& one) { return one.rule == "guard"; };
  std::vector<std::string> lines;
  if (std::ranges::any_of(decided.changes, is_guard))
    lines.emplace_back("Python programs are guarded: PYTHONPATH begins with the guard's directory");
  std::ranges::transform(decided.guarded, std::back_inserter(lines), describe_one);
  for (const Decision& one : decided.changes)
    if (!is_guard(one) && !(one.implied && one.rule.starts_with("propagate.")))
      lines.push_back(describe_one(one));
  if (explain)
    std::ranges::transform(decided.kept, std::back_inserter(lines), describe_one);
  return lines;
}

} // namespace sharefs::cachefix
