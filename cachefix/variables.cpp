// Environment variables that say where caches are, and whether a change of them arrives.
#include "cachefix/draft.hpp"

#include "base/path.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

struct Base {
  std::string_view name;     ///< `$NAME` at the start of a default
  std::string_view fallback; ///< its own default
};
constexpr Base k_bases[] = {{"HF_HOME", "$XDG_CACHE_HOME/huggingface"},
                            {"XDG_CACHE_HOME", "~/.cache"},
                            {"XDG_DATA_HOME", "~/.local/share"},
                            {"TRITON_HOME", "~"}};

/// `$HF_HOME/datasets` as the program would expand it.
std::string expand(const Draft& draft, const Program& program, std::string_view text) {
  if (!text.starts_with('$'))
    return std::string(text);
  const auto end = std::min(text.find('/'), text.size());
  const std::string_view name = text.substr(1, end - 1);
  const std::string rest(text.substr(end));
  if (const auto value = draft.variable(program, name))
    return *value + rest;
  for (const Base& base : k_bases)
    if (base.name == name)
      return expand(draft, program, base.fallback) + rest;
  return {};
}

const UserRule* user_rule(const Draft& draft, std::string_view name) {
  for (const UserRule& rule : draft.rules.user)
    if (rule.flag == name)
      return &rule;
  return nullptr;
}

bool is_set_here(const Draft& draft, const std::string& name) {
  return draft.out.set.contains(name) || draft.out.unset.contains(name) ||
         std::any_of(draft.out.changes.begin(), draft.out.changes.end(),
                     [&](const Change& change) { return change.flag == name; });
}

void one_variable(Draft& draft, const Walk& walk, const Program& program, const std::string& name,
                  CacheClass cache_class, std::string_view fallback, const std::string& reason) {
  if (is_set_here(draft, name))
    return;
  const auto given = draft.variable(program, name);
  const std::string value = given ? *given : expand(draft, program, fallback);
  const auto path = draft.absolute(program, value);
  const sys::Entry* place = path ? draft.place(*path) : nullptr;
  if (place == nullptr || !place->shared)
    return;
  const auto assigned = std::find_if(program.assigned.rbegin(), program.assigned.rend(),
                                     [&](const Assignment& one) { return one.name == name; });
  const std::optional<std::size_t> index =
      assigned == program.assigned.rend() ? std::nullopt : std::optional<std::size_t>(assigned->index);
  if (cache_class != CacheClass::node_local) {
    if (given)
      draft.keep(name, index, value, cache_class, reason);
    return;
  }
  const auto local = draft.local_for(*path);
  if (!local)
    return;
  // Set already, and as far as it can get: `srun --export=NONE` keeps it from the program this time, too.
  const bool set_outside = std::find(draft.facts.environment.begin(), draft.facts.environment.end(),
                                     name + "=" + *local) != draft.facts.environment.end();
  if (set_outside && can_carry(draft, walk, program) == false)
    return;
  if (given && name == "HF_DATASETS_CACHE")
    draft.report_leftovers(*path);
  draft.set_variable(program, name, *local, CacheClass::node_local, "variable." + name, reason);
}

} // namespace

void sanitize_variables(Draft& draft, const Walk& walk, const Program& program) {
  for (const VariableRule& rule : variable_rules()) {
    CacheClass cache_class = rule.cache_class;
    std::string reason(rule.reason);
    if (const UserRule* user = user_rule(draft, rule.name); user != nullptr && cache_class != CacheClass::never) {
      cache_class = user->local ? CacheClass::node_local : CacheClass::shared;
      reason = "a rule of yours (" + user->origin + ")";
    }
    one_variable(draft, walk, program, std::string(rule.name), cache_class, rule.fallback, reason);
  }
  for (const UserRule& user : draft.rules.user)
    if (user.local && !user.flag.starts_with('-') && !user.flag.empty())
      one_variable(draft, walk, program, user.flag, CacheClass::node_local, "",
                   "a rule of yours (" + user.origin + ")");
}

} // namespace sharefs::cachefix
