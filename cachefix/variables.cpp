// Environment variables that say where caches are.
#include "cachefix/launch.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

/// `$NAME` at the start of a default, and its own default.
constexpr std::pair<std::string_view, std::string_view> k_bases[] = {{"HF_HOME", "$XDG_CACHE_HOME/huggingface"},
                                                                     {"XDG_CACHE_HOME", "~/.cache"},
                                                                     {"XDG_DATA_HOME", "~/.local/share"},
                                                                     {"TRITON_HOME", "~"},
                                                                     {"TMPDIR", "/tmp"}};

/// `$HF_HOME/datasets` as the program would expand it.
std::string expand(const Launch& launch, const Program& program, std::string_view text) {
  if (!text.starts_with('$'))
    return std::string(text);
  const auto end = std::min(text.find('/'), text.size());
  const std::string_view name = text.substr(1, end - 1);
  const std::string rest(text.substr(end));
  if (const auto value = launch.variable(program, name))
    return *value + rest;
  for (const auto& [base, fallback] : k_bases)
    if (base == name)
      return expand(launch, program, fallback) + rest;
  return {};
}

/// One variable, by the table and the user's rules.
struct Known {
  std::string name;
  CacheClass cache_class;
  std::string_view fallback;
  std::string reason;
  bool by_user = false;
  Holds holds = Holds::data;
};

std::vector<Known> all_rules(const Rules& rules) {
  std::vector<Known> all;
  for (const VariableRule& rule : variable_rules()) {
    Known known{std::string(rule.name), rule.cache_class, rule.fallback, std::string(rule.reason), false, rule.holds};
    for (const UserRule& user : rules.user)
      if (user.flag == rule.name && rule.cache_class != CacheClass::never && !known.by_user) {
        known.cache_class = user.local ? CacheClass::node_local : CacheClass::shared;
        known.reason = "a rule of yours (" + user.origin + ")";
        known.by_user = true;
      }
    all.push_back(std::move(known));
  }
  for (const UserRule& user : rules.user)
    if (user.local && !user.flag.starts_with('-') && !user.flag.empty() &&
        std::ranges::none_of(all, [&](const Known& one) { return one.name == user.flag; }))
      all.push_back({user.flag, CacheClass::node_local, "", "a rule of yours (" + user.origin + ")", true});
  return all;
}

class VariableDecider {
 public:
  VariableDecider(const Launch& launch, const Program& program) : m_launch(launch), m_program(program) {}

  void decide(const Known& one, bool defaults) {
    const auto given = m_launch.variable(m_program, one.name);
    const std::string value = given ? *given : defaults ? expand(m_launch, m_program, one.fallback) : "";
    const auto path = m_launch.shared_path(m_program, value);
    if (!path)
      return;
    const Assignment* const assigned = m_program.assignment_of(one.name);
    const auto index = assigned == nullptr ? std::nullopt : std::optional(assigned->index);
    const auto stays = [&](std::string why) {
      if (given)
        out.push_back(keep(one.name, index, value, one.cache_class, std::move(why)));
    };
    if (!is_moved(one.cache_class))
      return stays(one.reason);
    if (one.by_user)
      return move(one, given, value, *path);
    if (one.cache_class == CacheClass::mixed && locks_are_enough(m_launch, *path))
      return stays("file locks exclude other hosts there, and caches.when is racy");
    if (one.cache_class == CacheClass::mixed && m_launch.unguarded(m_program).empty()) {
      if (given || one.name == "HF_DATASETS_CACHE") {
        out.push_back(guarded(m_launch, one.name, index, value, *path));
        out.back().implied = !given;
      }
      return;
    }
    if (one.cache_class == CacheClass::mixed && m_launch.is_offline(m_program) && !m_launch.rules.seed)
      return stays("offline, what lies there is needed");
    move(one, given, value, *path);
  }

  Decisions out;

 private:
  void move(const Known& one, const std::optional<std::string>& given, const std::string& value,
            const std::string& path) {
    const std::string local = m_launch.local_for(path, one.holds);
    if (local.empty()) { // that code has no place of its own is no reason not to start
      const bool none = m_launch.facts.local().directory.empty();
      out.push_back(no_local_directory(m_launch, given && none ? Severity::error : Severity::warning,
                                       none ? Holds::data : one.holds));
      return;
    }
    auto decision = set_variable(m_launch, m_program, one.name, local);
    if (!decision)
      return;
    decision->cache_class = CacheClass::node_local;
    decision->rule = "variable." + one.name;
    decision->reason = given ? one.reason : one.reason + "; its default is " + value;
    decision->implied = !given;
    if (!given)
      decision->from = std::nullopt;
    decision->directory = local;
    decision->stands_for = normalize_path(path);
    out.push_back(*std::move(decision));
  }

  const Launch& m_launch;
  const Program& m_program;
};

/// Variables that name a cache on shared storage which no row knows, in one line. And TMPDIR, below which everything
/// else may cache.
void report_unknown(const Launch& launch, const Program& program, const std::vector<Known>& known, Decisions& out) {
  Names names;
  for (const auto& [name, value] : launch.environment) {
    const bool row = std::ranges::any_of(known, [&](const Known& one) { return one.name == name; });
    if (!row && (names_cache(name) || name == "TMPDIR") && value.starts_with('/') && launch.facts.is_shared(value))
      names.push_back(name);
  }
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::any_of(launch.rules.user, [&](const UserRule& rule) { return rule.flag == name; }) ||
           !launch.variable(program, name);
  });
  if (!names.empty())
    out.push_back(warning("SF406", join(names, ", "), "lies on shared storage, and no rule says what is kept there",
                          "say `--local " + names.front() + "` or `--keep " + names.front() + "`"));
}

} // namespace

Decisions decide_variables(const Launch& launch, const Program& program, const Framework* framework) {
  if ((framework != nullptr && framework->keeps_caches) || is_plain_tool(program.name))
    return {};
  const bool defaults = framework != nullptr || launch.reads_caches(program);
  const std::vector<Known> known = all_rules(launch.rules);
  std::vector<std::string> paths;
  for (const Known& one : known)
    if (const auto value = launch.variable(program, one.name); value || defaults)
      if (auto path = launch.absolute(program, value ? *value : expand(launch, program, one.fallback)))
        paths.push_back(*std::move(path));
  for (const auto& [name, value] : launch.environment)
    if ((names_cache(name) || name == "TMPDIR") && value.starts_with('/'))
      paths.push_back(value);
  launch.facts.expect(paths);
  VariableDecider decider(launch, program);
  for (const Known& one : known)
    decider.decide(one, defaults);
  report_unknown(launch, program, known, decider.out);
  return std::move(decider.out);
}

Decisions decide_guard(const Launch& launch, const Program& program) {
  Decisions out;
  if (!launch.rules.guard || is_plain_tool(program.name))
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
