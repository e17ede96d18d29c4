#include "cachefix/document.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace sharefs::cachefix {
namespace {

using Json = nlohmann::ordered_json;

Json words(const Argv& argv) {
  Json out = Json::array();
  for (const std::string& word : argv)
    out.push_back(to_utf8(word));
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

Json document(const Argv& argv, const Sanitized& decision) {
  Json out = Json::object();
  out["argv"] = words(argv);
  out["final_argv"] = words(decision.argv);
  if (!std::ranges::all_of(decision.argv, [](const std::string& word) { return is_utf8(word); })) {
    Json encoded = Json::array();
    for (const std::string& word : decision.argv)
      encoded.push_back(base64(word));
    out["final_argv_base64"] = std::move(encoded);
  }
  Json chain = Json::array();
  for (const auto& [launcher, index] : decision.chain)
    chain.push_back(Json{{"launcher", launcher}, {"index", index}});
  out["chain"] = std::move(chain);
  out["script"] = decision.scripts.empty() ? Json(nullptr) : script_json(decision.scripts.front());
  if (decision.scripts.size() > 1) {
    Json scripts = Json::array();
    for (const ScriptFound& script : decision.scripts)
      scripts.push_back(script_json(script));
    out["scripts"] = std::move(scripts);
  }
  Json changes = Json::array();
  for (const Decision& change : decision.changes())
    changes.push_back(Json{{"kind", to_string(change.kind)},
                           {"flag", to_utf8(change.flag)},
                           {"index", index_or_null(change.index)},
                           {"from", text_or_null(change.from)},
                           {"to", text_or_null(change.to)},
                           {"class", to_string(change.cache_class)},
                           {"action", to_string(change.action)},
                           {"rule", change.rule},
                           {"implied", change.implied},
                           {"reason", to_utf8(change.reason)}});
  out["changes"] = std::move(changes);
  Json kept = Json::array();
  for (const Decision& one : decision.kept())
    kept.push_back(Json{{"flag", to_utf8(one.flag)},
                        {"index", index_or_null(one.index)},
                        {"value", to_utf8(one.from.value_or(""))},
                        {"class", to_string(one.cache_class)},
                        {"reason", to_utf8(one.reason)}});
  out["kept"] = std::move(kept);
  Json set = Json::object();
  for (const auto& [name, value] : decision.set)
    set[to_utf8(name)] = to_utf8(value);
  out["environment"] = Json{{"set", std::move(set)}, {"unset", Json::array()}};
  return out;
}

std::string describe(const Decision& decision) {
  const auto quoted = [](const std::optional<std::string>& text) { return text ? shell_quote(*text) : std::string(); };
  std::string line;
  switch (decision.action) {
  case Action::rewrite:
    line = decision.flag + " " + quoted(decision.from) + " -> " + quoted(decision.to);
    break;
  case Action::drop:
    line = decision.flag + " " + quoted(decision.from) + " dropped";
    break;
  case Action::set:
    line = decision.kind == ChangeKind::file ? decision.flag + " written"
                                             : decision.flag + "=" + quoted(decision.to) + " set";
    break;
  case Action::leave:
  case Action::warn:
    line = decision.flag + " " + quoted(decision.from) + " unchanged";
    break;
  }
  return to_utf8(line) + ": " + decision.reason;
}

std::vector<std::string> describe_changes(const Sanitized& decided) {
  std::vector<std::string> lines;
  std::vector<std::string> implied;
  std::set<std::string> places;
  for (const Decision& one : decided.changes()) {
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
