// Decides about the environment variables that name caches.
#include "cachefix/launch.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

namespace sharefs::cachefix {
namespace {

/// Expands a default such as `$HF_HOME/datasets` with the variables that the program will have.
std::string expand(const Launch& launch, const Program& program, std::string_view text) {
  const auto value_of = [&](std::string_view name, std::size_t) {
    const auto base = std::ranges::find(rows_of("base"), name, &Row::name);
    const auto value = launch.variable(program, name);
    return value || base == rows_of("base").end() ? value : expand(launch, program, base->get("default"));
  };
  return expand_variables(text, value_of).value_or("");
}

/// A variable whose value, or whose default, is a path. `given`: the variable is set.
struct FoundVariable {
  const CacheRule& rule;
  bool given;
  std::string value, path;
};

void move_cache(const Launch& launch, const Program& program, const FoundVariable& one, Decisions& out) {
  const std::string local = launch.local_for(one.path, one.rule.holds);
  if (local.empty()) { // only a missing directory for data may stop the launch; without one for code it goes on
    const bool none = launch.facts.local().directory.empty();
    out.push_back(report_no_local_directory(launch, one.given && none, none ? Holds::data : one.rule.holds));
    return;
  }
  auto decision = set_variable(launch, program, one.rule.name, local);
  if (!decision)
    return;
  decision->cache_class = CacheClass::node_local;
  decision->rule = "variable." + one.rule.name;
  decision->reason = one.given ? one.rule.reason : one.rule.reason + "; its default is " + one.value;
  decision->implied = !one.given;
  decision->stands_for = normalize_path(one.path);
  out.push_back(*std::move(decision));
}

void decide_variable(const Launch& launch, const Program& program, const FoundVariable& one, Decisions& out) {
  const CacheRule& rule = one.rule;
  const Assignment* const assigned = program.assignment_of(rule.name);
  const auto index = assigned == nullptr ? std::nullopt : std::optional(assigned->index);
  const bool mixed = rule.cache_class == CacheClass::mixed && !rule.by_user;
  std::string stays;
  if (!is_moved(rule.cache_class))
    stays = rule.reason;
  else if (mixed && locks_are_enough(launch, one.path))
    stays = "file locks exclude other hosts there, and caches.when is racy";
  else if (mixed && launch.is_guarded(program)) {
    if (!one.given && rule.name != "HF_DATASETS_CACHE")
      return;
    out.push_back(guard_cache(launch, rule.name, index, one.value, one.path));
    out.back().implied = !one.given;
    return;
  } else if (mixed && launch.is_offline(program))
    stays = "offline, what lies there is needed";
  else
    return move_cache(launch, program, one, out);
  if (one.given)
    out.push_back(keep(rule.name, index, one.value, rule.cache_class, stays));
}

} // namespace

Decisions decide_variables(const Launch& launch, const Program& program, const Row* framework) {
  Decisions out;
  if (keeps_caches(framework) || is_plain_tool(program))
    return out;
  const bool defaults = framework != nullptr || launch.reads_caches(program);
  const std::vector<CacheRule> rules = variable_rules(launch.rules.user);
  std::vector<FoundVariable> found;
  Names paths, unknown;
  for (const CacheRule& rule : rules) {
    const auto given = launch.variable(program, rule.name);
    const std::string value = given ? *given : defaults ? expand(launch, program, rule.fallback) : "";
    if (const auto path = launch.resolve_path(program, value)) {
      found.push_back({rule, given.has_value(), value, *path});
      paths.push_back(*path);
    }
  }
  // Variables that look like caches but have no row are reported, and so is TMPDIR, below which any program may cache.
  const Environment all = launch.all_variables(program);
  for (const auto& [name, value] : all)
    if ((names_cache(name) || name == "TMPDIR") && value.starts_with('/') &&
        std::ranges::find(rules, name, &CacheRule::name) == rules.end() &&
        std::ranges::find(launch.rules.user, name, &UserRule::flag) == launch.rules.user.end()) {
      unknown.push_back(name);
      paths.push_back(value);
    }
  launch.facts.find_all(paths);
  for (const FoundVariable& one : found)
    if (launch.facts.is_shared(one.path))
      decide_variable(launch, program, one, out);
  std::erase_if(unknown, [&](const std::string& name) { return !launch.facts.is_shared(all.at(name)); });
  if (!unknown.empty())
    out.push_back(warning("SF406", join(unknown, ", "), "lies on shared storage, and no rule says what is kept there",
                          "say `--local " + unknown.front() + "` or `--keep " + unknown.front() + "`"));
  return out;
}

Decisions decide_guard(const Launch& launch, const Program& program) {
  Decisions out;
  if (!launch.rules.guard || is_plain_tool(program))
    return out;
  const std::string before = launch.variable(program, "PYTHONPATH").value_or("");
  for (const auto& [name, value] : guard_variables(*launch.rules.guard, before))
    if (auto decision = set_variable(launch, program, name, value)) {
      decision->rule = "guard";
      decision->reason = "the guard ends the race in the program's own process";
      decision->implied = true;
      out.push_back(*std::move(decision));
    }
  return out;
}

} // namespace sharefs::cachefix
