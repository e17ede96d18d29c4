#include "cachefix/document.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

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
  if (!std::all_of(decision.argv.begin(), decision.argv.end(), [](const std::string& word) { return is_utf8(word); })) {
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
  for (const Change& change : decision.changes)
    changes.push_back(Json{{"kind", to_string(change.kind)},
                           {"flag", to_utf8(change.flag)},
                           {"index", index_or_null(change.index)},
                           {"from", text_or_null(change.from)},
                           {"to", text_or_null(change.to)},
                           {"class", to_string(change.cache_class)},
                           {"action", to_string(change.action)},
                           {"rule", change.rule},
                           {"reason", to_utf8(change.reason)}});
  out["changes"] = std::move(changes);
  Json kept = Json::array();
  for (const Kept& one : decision.kept)
    kept.push_back(Json{{"flag", to_utf8(one.flag)},
                        {"index", index_or_null(one.index)},
                        {"value", to_utf8(one.value)},
                        {"class", to_string(one.cache_class)},
                        {"reason", to_utf8(one.reason)}});
  out["kept"] = std::move(kept);
  Json set = Json::object();
  for (const auto& [name, value] : decision.set)
    set[to_utf8(name)] = to_utf8(value);
  Json unset = Json::array();
  for (const std::string& name : decision.unset)
    unset.push_back(to_utf8(name));
  out["environment"] = Json{{"set", std::move(set)}, {"unset", std::move(unset)}};
  return out;
}

std::string describe(const Change& change) {
  const auto quoted = [](const std::optional<std::string>& text) { return text ? shell_quote(*text) : std::string(); };
  std::string line;
  switch (change.action) {
  case ChangeAction::rewrite:
    line = change.flag + " " + quoted(change.from) + " -> " + quoted(change.to);
    break;
  case ChangeAction::drop:
    line = change.flag + " " + quoted(change.from) + " dropped";
    break;
  case ChangeAction::set:
    line = change.kind == ChangeKind::file ? change.flag + " written" : change.flag + "=" + quoted(change.to) + " set";
    break;
  case ChangeAction::unset:
    line = change.flag + " unset";
    break;
  }
  return to_utf8(line) + ": " + change.reason;
}

std::string describe(const Kept& kept) {
  return to_utf8(kept.flag + " " + shell_quote(kept.value)) + " unchanged: " + kept.reason;
}

} // namespace sharefs::cachefix
