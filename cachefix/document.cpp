#include "cachefix/run_plan.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace sharefs::cachefix {
namespace {

using Json = nlohmann::ordered_json;

template <class All, class Write> Json list_of(const All& all, const Write& write) {
  Json out = Json::array();
  for (const auto& one : all)
    out.push_back(write(one));
  return out;
}

Json index_or_null(const std::optional<std::size_t>& index) {
  return index ? Json(*index) : Json(nullptr);
}
Json text_or_null(const std::optional<std::string>& text) {
  return text ? Json(to_utf8(*text)) : Json(nullptr);
}

Json script_json(const ScriptFound& script) {
  return Json{{"index", script.index},
              {"name", to_utf8(script.name)},
              {"framework", script.framework.empty() ? Json(nullptr) : Json(script.framework)}};
}

} // namespace

Json document(const Argv& argv, const RunPlan& decision) {
  Json out = Json::object();
  out["argv"] = list_of(argv, to_utf8);
  out["final_argv"] = list_of(decision.argv, to_utf8);
  if (!std::ranges::all_of(decision.argv, is_utf8))
    out["final_argv_base64"] = list_of(decision.argv, base64);
  out["chain"] =
      list_of(decision.chain, [](const auto& link) { return Json{{"launcher", link.first}, {"index", link.second}}; });
  out["script"] = decision.scripts.empty() ? Json(nullptr) : script_json(decision.scripts.front());
  if (decision.scripts.size() > 1)
    out["scripts"] = list_of(decision.scripts, script_json);
  out["changes"] = list_of(decision.changes(), [](const Decision& change) {
    return Json{
        {"kind", to_string(change.kind)},     {"flag", to_utf8(change.flag)},  {"index", index_or_null(change.index)},
        {"from", text_or_null(change.from)},  {"to", text_or_null(change.to)}, {"class", to_string(change.cache_class)},
        {"action", to_string(change.action)}, {"rule", change.rule},           {"implied", change.implied},
        {"reason", to_utf8(change.reason)}};
  });
  out["guarded"] = list_of(decision.guarded(), [](const Decision& one) {
    return Json{{"flag", to_utf8(one.flag)},
                {"index", index_or_null(one.index)},
                {"value", to_utf8(one.from.value_or(""))},
                {"directory", text_or_null(one.to)},
                {"implied", one.implied},
                {"reason", to_utf8(one.reason)}};
  });
  out["kept"] = list_of(decision.kept(), [](const Decision& one) {
    return Json{{"flag", to_utf8(one.flag)},
                {"index", index_or_null(one.index)},
                {"value", to_utf8(one.from.value_or(""))},
                {"class", to_string(one.cache_class)},
                {"reason", to_utf8(one.reason)}};
  });
  Json set = Json::object();
  for (const auto& [name, value] : decision.set)
    set[to_utf8(name)] = to_utf8(value);
  out["environment"] = Json{{"set", std::move(set)}, {"unset", Json::array()}};
  return out;
}

std::string describe(const Decision& decision) {
  const auto quoted = [](const std::optional<std::string>& text) { return text ? shell_quote(*text) : std::string(); };
  const std::string named = decision.flag + " " + quoted(decision.from);
  const std::string to = decision.to.value_or("");
  const bool whole = to.starts_with(decision.flag + "=") || to.starts_with('-') || decision.rule == "node";
  const bool variable = decision.variable || decision.kind == ChangeKind::environment;
  const std::string line = decision.action == Action::rewrite  ? named + " -> " + quoted(to)
                           : decision.action == Action::guard  ? named + " guarded, in " + decision.to.value_or("place")
                           : decision.action != Action::set    ? named + " unchanged"
                           : decision.kind == ChangeKind::file ? decision.flag + " written"
                           : variable                          ? decision.flag + "=" + quoted(to) + " set"
                           : whole                             ? "`" + to + "` added"
                                                               : "`" + decision.flag + " " + to + "` added";
  return to_utf8(line) + ": " + decision.reason;
}

std::string summary(const RunPlan& decided) {
  std::vector<std::string> parts;
  const auto others = [](std::size_t all) { return all > 1 ? fmt::format(" and {} more", all - 1) : std::string(); };
  auto guarded = decided.guarded();
  std::ranges::stable_sort(guarded, {}, &Decision::implied); // what was named comes first
  if (!guarded.empty() && !guarded.front().implied) {
    const Decision& first = guarded.front();
    parts.push_back(fmt::format("datasets of {} {}{} are built {}", first.flag, to_utf8(first.stands_for),
                                others(guarded.size()),
                                first.to ? "on this node (" + *first.to + ")" : std::string("there by one process")));
  }
  std::set<std::string> from, to;
  for (const auto& [directory, shared] : decided.directories) {
    from.insert(to_utf8(shared));
    to.insert(decided.directories.size() == 1 ? directory : parent_path(directory));
  }
  if (!from.empty())
    parts.push_back(fmt::format("caches of {}{} on this node ({})", *from.begin(), others(from.size()),
                                join(std::vector<std::string>(to.begin(), to.end()), ", ")));
  const auto changes = decided.changes();
  const auto number = std::ranges::count_if(changes, [](const Decision& one) { return one.rule == "node"; });
  if (parts.empty() && number > 0)
    parts.push_back("caches are decided about on the nodes");
  return join(parts, "; ");
}

std::vector<std::string> describe_changes(const RunPlan& decided) {
  std::vector<std::string> lines;
  std::vector<std::string> implied;
  std::set<std::string> places;
  const bool guard = std::ranges::any_of(decided.changes(), [](const Decision& one) { return one.rule == "guard"; });
  if (guard)
    lines.emplace_back("Python programs are guarded: PYTHONPATH begins with the guard's directory");
  for (const Decision& one : decided.guarded())
    lines.push_back(describe(one));
  for (const Decision& one : decided.changes()) {
    if (one.rule == "guard" || (one.implied && one.rule.starts_with("propagate.")))
      continue;
    if (!one.implied || one.kind != ChangeKind::environment) {
      lines.push_back(describe(one));
      continue;
    }
    implied.push_back(one.flag);
    places.insert(one.stands_for);
  }
  constexpr std::size_t k_named = 3;
  if (!implied.empty()) {
    const std::size_t named = std::min(implied.size(), k_named);
    std::string line = join({implied.begin(), implied.begin() + static_cast<std::ptrdiff_t>(named)}, ", ");
    if (implied.size() > named)
      line += " and " + std::to_string(implied.size() - named) + " more";
    lines.push_back(line + " set to the node's own disk: their defaults lie on shared storage (" +
                    to_utf8(*places.begin()) + (places.size() > 1 ? ", ..." : "") + ")");
  }
  return lines;
}

} // namespace sharefs::cachefix
