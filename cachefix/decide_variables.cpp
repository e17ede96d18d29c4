// Environment variables that say where caches are, and whether a change of them arrives.
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
                                                                     {"TRITON_HOME", "~"}};
/// What file locks protect.
constexpr std::string_view k_locked = "HF_DATASETS_* HF_METRICS_CACHE HF_EVALUATE_CACHE";
/// Directories that a batch system makes for each job, on the node.
constexpr std::string_view k_job_directories = "TMPDIR SLURM_TMPDIR SLURM_JOB_TMPDIR PBS_JOBDIR LOCAL_SCRATCH JOBTMP";

/// `$HF_HOME/datasets` as the program would expand it; `from`: the variable that it is made of, if one is set.
std::string expand(const Launch& launch, const Program& program, std::string_view text, std::string* from = nullptr) {
  if (!text.starts_with('$'))
    return std::string(text);
  const auto end = std::min(text.find('/'), text.size());
  const std::string_view name = text.substr(1, end - 1);
  const std::string rest(text.substr(end));
  if (const auto value = launch.variable(program, name)) {
    if (from != nullptr)
      *from = name;
    return *value + rest;
  }
  for (const auto& [base, fallback] : k_bases)
    if (base == name)
      return expand(launch, program, fallback, from) + rest;
  return {};
}

/// One variable with all that is known of it here.
struct Judged {
  std::string name;
  CacheClass cache_class;
  std::string_view fallback;
  std::string reason;
  bool by_user = false;
  Holds holds = Holds::data;
};

std::vector<Judged> all_rules(const Rules& rules) {
  std::vector<Judged> all;
  for (const VariableRule& rule : variable_rules()) {
    Judged judged{std::string(rule.name), rule.cache_class, rule.fallback, std::string(rule.reason), false, rule.holds};
    for (const UserRule& user : rules.user)
      if (user.flag == rule.name && rule.cache_class != CacheClass::never && !judged.by_user) {
        judged.cache_class = user.local ? CacheClass::node_local : CacheClass::shared;
        judged.reason = "a rule of yours (" + user.origin + ")";
        judged.by_user = true;
      }
    all.push_back(std::move(judged));
  }
  for (const UserRule& user : rules.user)
    if (user.local && !user.flag.starts_with('-') && !user.flag.empty() &&
        std::ranges::none_of(all, [&](const Judged& one) { return one.name == user.flag; }))
      all.push_back({user.flag, CacheClass::node_local, "", "a rule of yours (" + user.origin + ")", true});
  return all;
}

class VariableJudge {
 public:
  VariableJudge(const Launch& launch, const Program& program) : m_launch(launch), m_program(program) {}

  void judge(const Judged& one, bool defaults) {
    const auto given = m_launch.variable(m_program, one.name);
    std::string from = one.name;
    const std::string value = given ? *given : defaults ? expand(m_launch, m_program, one.fallback, &from) : "";
    if (is_unknown(value))
      return unknown(one, from, value);
    const auto path = m_launch.shared_path(m_program, value);
    if (!path)
      return;
    const Assignment* const assigned = m_program.assignment_of(one.name);
    const auto index = assigned == nullptr ? std::nullopt : std::optional(assigned->index);
    const auto stays = [&](std::string why) {
      if (given)
        out.push_back(keep(one.name, index, value, one.cache_class, std::move(why)));
    };
    if (one.cache_class != CacheClass::node_local)
      return stays(one.reason);
    if (one.by_user)
      return move(one, given, value, *path);
    const bool offline = is_listed(one.name, k_read_offline) && m_launch.is_offline(m_program, one.name);
    const auto safe = stays_safely(m_launch, one.name, *path, offline, is_listed(one.name, k_locked));
    if (!safe)
      return move(one, given, value, *path);
    stays(safe->why);
    if (safe->says)
      out.push_back(*safe->says);
  }

  Decisions out;

 private:
  void unknown(const Judged& one, const std::string& name, const std::string& value) {
    const auto slash = value.find('/');
    const std::string first = value.substr(0, slash);
    if (one.cache_class != CacheClass::node_local ||
        (first.size() > 1 && is_listed(first.substr(1), k_job_directories)))
      return;
    Decision said = warning("SF403", name,
                            "its value `" + shown(m_launch.variable(m_program, name).value_or(value)) +
                                "` is not known here, so it was left",
                            "write the path out, or assign the variable literally in the same text");
    add_once(out, std::move(said)); // caches of several kinds are made of one variable
  }

  void move(const Judged& one, const std::optional<std::string>& given, const std::string& value,
            const std::string& path) {
    const std::string local = m_launch.local_for(path, one.holds);
    if (local.empty()) { // that code has no place of its own is no reason not to start
      const bool none = m_launch.stakes.local().directory.empty();
      out.push_back(no_local_directory(m_launch, given && none ? Severity::error : Severity::warning,
                                       none ? Holds::data : one.holds));
      return;
    }
    // Set already, and as far as it can get: `srun --export=NONE` keeps it from the program this time, too.
    const auto& environment = m_launch.setting.environment;
    if (const auto set = environment.find(one.name);
        set != environment.end() && set->second == local && !can_carry(m_launch, m_program))
      return;
    auto decision = set_variable(m_launch, m_program, one.name, local);
    if (!decision)
      return;
    // Of a default that nobody named, only what is known, and once.
    if (given ? one.name == "HF_DATASETS_CACHE" || one.name == "HF_MODULES_CACHE"
              : one.name == "HF_DATASETS_CACHE" && m_launch.stakes.names(path))
      append(out, report_cache(m_launch, path, local));
    decision->cache_class = CacheClass::node_local;
    decision->rule = "variable." + one.name;
    decision->reason = one.reason;
    decision->implied = !given;
    if (!given)
      decision->from = std::nullopt;
    if (!given && decision->kind == ChangeKind::environment)
      decision->reason += "; its default is " + value;
    rest_on(*decision, local, path);
    out.push_back(*std::move(decision));
  }

  const Launch& m_launch;
  const Program& m_program;
};

} // namespace

bool is_moved(std::string_view variable) {
  return variable == "HF_HOME" || std::ranges::any_of(variable_rules(), [&](const VariableRule& rule) {
           return rule.name == variable && rule.cache_class == CacheClass::node_local;
         });
}

std::optional<Verdict> stays_safely(const Launch& launch, const std::string& name, const std::string& path,
                                    bool offline, bool locked) {
  // A script's copy starts some other time: then complete datasets may lie there.
  if (offline && !launch.rules.seed && (!launch.setting.can_write || launch.stakes.has_complete(path)))
    return Verdict{Way::leave, "nothing is downloaded offline, and what is complete there is only read", false,
                   reported(Severity::info, "SF419", name,
                            "stays in " + path + ": offline, what is complete there is only read",
                            "to have it on the node's own disk, add `--seed`")};
  if (locked && launch.rules.when == When::racy && launch.stakes.place(path).lock_scope == sys::LockScope::all_hosts)
    return Verdict{Way::leave, "file locks exclude other hosts there, and caches.when is racy"};
  return std::nullopt;
}

Decision no_local_directory(const Launch& launch, Severity severity, Holds holds) {
  auto found = diagnose(launch.stakes.local(holds), severity).front();
  if (holds == Holds::code)
    found.message += "; they were left where they are";
  return reported(severity, found.code, found.subject, std::move(found.message), std::move(found.hint));
}

Decisions report_cache(const Launch& launch, const std::string& path, const std::string& local) {
  Decisions out;
  const Names& left = launch.stakes.leftovers(path);
  if (!left.empty())
    out.push_back(reported(Severity::info, "SF410", path,
                           "earlier launches left " + left.front() +
                               (left.size() == 1 ? "" : " and " + count_of(left.size() - 1, "other")),
                           "delete them when no job uses this cache; sharefs never does"));
  else if (!launch.rules.seed && launch.stakes.has_datasets(path) &&
           launch.stakes.place(local).kind == sys::EntryKind::missing)
    out.push_back(reported(Severity::info, "SF422", path,
                           "holds datasets or modules, which are made again on this node",
                           "add `--seed` to have the complete ones copied, as a node without network needs"));
  return out;
}

Decisions decide_variables(const Launch& launch, const Program& program, const Framework* framework,
                           const Decisions& so_far) {
  if ((framework != nullptr && framework->keeps_caches) ||
      (program.kind == ProgramKind::shell && program.assigned.empty()))
    return {};
  const bool defaults = framework != nullptr || launch.reads_caches(program);
  // They read none: a function's commands are judged by themselves.
  const bool tool = !defaults && (is_plain_tool(program.name) || launch.setting.functions.contains(program.name));
  std::vector<Judged> judged = all_rules(launch.rules);
  std::erase_if(judged, [&](const Judged& one) {
    const bool done =
        std::ranges::any_of(so_far, [&](const Decision& each) { return each.is_change() && each.flag == one.name; });
    const bool given_here = program.assignment_of(one.name) != nullptr;
    return done || ((tool || program.kind == ProgramKind::shell) && !given_here);
  });
  std::vector<std::string> paths;
  for (const Judged& one : judged)
    if (const auto value = launch.variable(program, one.name); value || defaults)
      if (auto path = launch.absolute(program, value ? *value : expand(launch, program, one.fallback)))
        paths.push_back(*std::move(path));
  launch.stakes.expect(paths);
  VariableJudge judge(launch, program);
  for (const Judged& one : judged)
    judge.judge(one, defaults);
  return std::move(judge.out);
}

Decisions decide_guard(const Launch& launch, const Program& program) {
  Decisions out;
  if (!launch.rules.guard || launch.setting.in_text || is_plain_tool(program.name))
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
