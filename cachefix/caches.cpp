// Decides about the caches of a program: those that its options and its variables name, and the defaults of variables.
// The program may run in a container.
#include "cachefix/launch.hpp"

#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

#include <unistd.h>
#include <utility>

namespace sharefs::cachefix {
namespace {

/// True if the path lies in one of the directories.
bool is_in(const Names& directories, const std::string& path) {
  return std::ranges::any_of(directories, [&](const std::string& one) { return is_under(path, one); });
}

/// Expands a default such as `$HF_HOME/datasets` with the variables that the program will have.
std::string expand(const Launch& launch, const Program& program, std::string_view text) {
  const auto value_of = [&](std::string_view name, std::size_t) {
    const auto base = std::ranges::find(rows_of("base"), name, &Row::name);
    const auto value = launch.variable(program, name);
    return value || base == rows_of("base").end() ? value : expand(launch, program, base->get("default"));
  };
  return expand_variables(text, value_of).value_or("");
}

/// True if a variable switches the hub libraries offline. Then the program needs what a cache holds already.
bool is_offline(const Launch& launch, const Program& program) {
  return any_word(words_of("offline"), ' ', [&](std::string_view name) {
    // As datasets/config.py and huggingface_hub/constants.py read it.
    return is_listed(lower_case(launch.variable(program, name).value_or("")), "1 on yes true");
  });
}

/// Returns the node-local directory for a shared path; empty if this host has none.
std::string local_for(const Launch& launch, const std::string& shared_path, bool holds_code = false) {
  const std::string& root = launch.facts.local().place(holds_code);
  return root.empty() ? root : root + "/" + cache_key(shared_path);
}

/// A cache of the program, named by an option or a variable.
struct Cache {
  CacheRule rule;
  Decision left;            ///< the decision that leaves it, without a reason
  std::string path;         ///< empty: the value is no path of this host
  const Assignment* option; ///< nullptr: a variable
};

/// Decides about the caches of one program, or of the program in a container.
class CacheDecider {
 public:
  CacheDecider(const Launch& launch, const Program& program, const Row* framework, const Names* container = nullptr)
      : m_launch(launch), m_program(program), m_framework(framework), m_container(container),
        m_guarded(container == nullptr && launch.is_guarded(program)),
        m_options(program_options(launch.argv, program)) {}

  Decisions decide_options() {
    std::vector<Cache> found;
    for (const Assignment& one : m_options)
      if (const auto rule = rule_for_flag(m_program, m_framework, one.name, m_launch.rules.user))
        found.push_back({*rule,
                         {.flag = one.name, .index = one.index, .from = one.value, .cache_class = rule->cache_class},
                         is_here(one.value) ? m_launch.resolve_path(m_program, one.value).value_or("") : "",
                         &one});
    decide_all(found);
    return std::exchange(m_out, {});
  }

  Decisions decide_variables() {
    const bool defaults = m_framework != nullptr || m_launch.reads_caches(m_program);
    const std::vector<CacheRule> rules = variable_rules(m_launch.rules.user);
    std::vector<Cache> found;
    for (const CacheRule& rule : rules) {
      const auto given = m_launch.variable(m_program, rule.name);
      const std::string value = given ? *given : defaults ? expand(m_launch, m_program, rule.fallback) : "";
      Decision left{.flag = rule.name, .from = value, .cache_class = rule.cache_class, .implied = !given};
      if (const Assignment* const word = m_program.assignment_of(rule.name))
        left.index = word->index;
      if (const auto path = m_launch.resolve_path(m_program, value))
        found.push_back({rule, std::move(left), *path, nullptr});
    }
    decide_all(found);
    report_unknown(rules);
    return std::exchange(m_out, {});
  }

 private:
  /// Decides about caches, of which those on this host's own disks stay.
  void decide_all(const std::vector<Cache>& found) {
    Names paths; // one request for all of them costs less than one for each
    for (const Cache& one : found)
      if (!one.path.empty())
        paths.push_back(one.path);
    m_launch.facts.find_all(paths);
    for (const Cache& one : found)
      if ((!one.path.empty() && m_launch.facts.is_shared(one.path)) ||
          (one.option != nullptr && !is_moved(one.rule.cache_class)))
        decide(one);
      else if (one.option != nullptr)
        keep(one, one.left.from->empty() ? "the value is empty" : "lies on this host's own disk");
  }

  /// Reports variables on shared storage that look like caches but have no row, and TMPDIR, below which any program may
  /// cache.
  void report_unknown(const std::vector<CacheRule>& rules) {
    const Environment all = m_launch.all_variables(m_program);
    Names unknown;
    for (const auto& [name, value] : all)
      if ((names_cache(name) || name == "TMPDIR") && value.starts_with('/') &&
          std::ranges::find(rules, name, &CacheRule::name) == rules.end() &&
          std::ranges::find(m_launch.rules.user, name, &UserRule::flag) == m_launch.rules.user.end() &&
          m_launch.facts.is_shared(value))
        unknown.push_back(name);
    if (!unknown.empty())
      m_out.push_back(warning("SF406", join(unknown, ", "),
                              "lies on shared storage, and no rule says what is kept there",
                              "say `--local " + unknown.front() + "` or `--keep " + unknown.front() + "`"));
  }

  /// Leaves the cache where it is, with the reason.
  void keep(const Cache& one, std::string why, std::optional<Decision> report = {}) {
    if (!one.left.implied) {
      m_out.push_back(one.left);
      m_out.back().reason = std::move(why);
    }
    if (report)
      m_out.push_back(*std::move(report));
  }

  /// Leaves the words as they are. If the program is guarded, the guard still builds what belongs into this cache.
  void leave(const Cache& one, std::string why, std::optional<Decision> report = {}) {
    if (m_guarded)
      return guard(one);
    keep(one, std::move(why), std::move(report));
  }

  /// Changes no word, and names where the guard builds what the program caches there.
  void guard(const Cache& one) {
    if (one.left.implied && one.left.flag != "HF_DATASETS_CACHE")
      return;
    const std::string& build = m_launch.rules.guard->build;
    const LocalRoot& root = m_launch.facts.local();
    const bool unique = build == "unique" || root.directory.empty() || root.memory;
    const std::string what = one.left.flag == "HF_MODULES_CACHE" ? "modules" : "datasets";
    const std::string reason =
        what + (unique               ? " are built there under a name of their own; models stay"
                : build == "publish" ? " are built on the node's own disk and copied there complete; models stay"
                                     : " are built on the node's own disk; models stay");
    Decision decision = one.left;
    decision.action = Action::guard;
    if (!unique)
      decision.to = local_for(m_launch, one.path);
    decision.cache_class = CacheClass::mixed;
    decision.rule = "guard";
    decision.reason = add_lock_note(reason, one.path);
    decision.stands_for = normalize_path(one.path);
    m_out.push_back(std::move(decision));
  }

  /// Returns the reason. A note is added if file locks do not exclude hosts there because two have the same name.
  [[nodiscard]] std::string add_lock_note(const std::string& reason, const std::string& path) const {
    return m_launch.facts.find(path).lock_scope == sys::LockScope::same_name
               ? reason + " (file locks do not exclude other hosts there: one has the name of this host, see SF247)"
               : reason;
  }

  /// True if a value means a path of this host. In a container only paths that it sees under the host's names count.
  [[nodiscard]] bool is_here(const std::string& value) const {
    return m_container == nullptr || find_opaque(m_launch.argv[*m_launch.walk.container])->has("same") ||
           is_in(*m_container, normalize_path(value));
  }

  /// True if an option about models or the hub has a value below this path: then models are read from there.
  [[nodiscard]] bool holds_models(const std::string& path) const {
    return std::ranges::any_of(m_options, [&](const Assignment& other) {
      const auto value = m_launch.resolve_path(m_program, other.value);
      const bool of_models =
          other.name.find("model") != std::string::npos || other.name.find("hub") != std::string::npos;
      return of_models && value && is_under(normalize_path(*value), normalize_path(path));
    });
  }

  /// Decides about a cache on shared storage: it is moved, guarded or left.
  void decide(const Cache& one) {
    const CacheRule& rule = one.rule;
    const bool option = one.option != nullptr, mixed = rule.cache_class == CacheClass::mixed;
    if (!is_moved(rule.cache_class))
      return keep(one, rule.reason);
    if (!rule.by_user && (option || mixed) && m_launch.rules.only_racy &&
        m_launch.facts.find(one.path).lock_scope == sys::LockScope::all_hosts)
      return keep(one, "file locks exclude other hosts there, and caches.when is racy");
    if (mixed && m_guarded && !(option && is_asked_for(rule)))
      return guard(one);
    if (option && !rule.by_user && !mixed && holds_models(one.path))
      return keep(one, "models are read from it, as another option shows");
    if (mixed && !rule.by_user && is_offline(m_launch, m_program))
      return leave(one, "offline, what lies there is needed");
    if (!rule.unless.empty() && any_listed(m_launch.facts.find(one.path, PathFact::names).names, rule.unless))
      return keep(one, "what lies there is shared on purpose");
    if (option)
      return decide_by_content(one);
    move(one);
  }

  /// True if the user wants the words of options changed, guarded or not.
  [[nodiscard]] bool is_asked_for(const CacheRule& rule) const {
    return rule.by_user || (m_launch.rules.guard && m_launch.rules.guard->build == "local");
  }

  /// Decides about the cache of an option by what lies there.
  void decide_by_content(const Cache& one) {
    const CacheRule& rule = one.rule;
    const bool mixed = rule.cache_class == CacheClass::mixed;
    const sys::Entry& there = m_launch.facts.find(one.path, PathFact::names);
    const std::string& name = one.left.flag;
    if (there.kind == sys::EntryKind::unknown) // it does not answer, or this user may not read it
      return keep(one, "it cannot be looked at",
                  warning("SF409", *one.left.from, there.error().message + ", so `" + name + "` was left",
                          "run `sharefs status`, and `ls -ld " + shell_quote(one.path) + "`"));
    const auto foreign = std::ranges::find_if(there.names, [](const std::string& file) {
      return !is_listed(file, words_of("library_files")) && file.find("___") == std::string::npos;
    });
    if (mixed && !rule.by_user && foreign != there.names.end())
      return leave(one, "`" + *foreign + "` lies there",
                   warning("SF420", *one.left.from,
                           "`" + *foreign + "` lies there, which neither datasets nor a hub library made, so `" + name +
                               "` was left: if nodes build datasets there, they race",
                           "if it is a cache of datasets and models only, say `--local " + rule.name + "`"));
    if (mixed && !is_asked_for(rule) && there.names.empty() && m_launch.runs_no_python(m_program))
      return keep(one, "nothing in it says that it is a cache of datasets");
    move(one, there.names);
  }

  /// Gives the option or the variable a node-local directory. `names` lie in the cache of an option.
  void move(const Cache& one, const Names& names = {}) {
    const std::string local = local_for(m_launch, one.path, one.rule.holds_code);
    if (local.empty()) {
      report_no_local_directory(one);
      if (one.option != nullptr)
        leave(one, "this host has no directory for it");
      return;
    }
    if (m_container != nullptr && !is_in(*m_container, local))
      return keep(one, "the container does not see the node's own disk");
    auto decision = one.option != nullptr ? std::optional(rewrite_value(*one.option, local))
                                          : set_variable(m_launch, m_program, one.left.flag, local);
    if (!decision)
      return; // it has this value already
    if (one.option != nullptr)
      decision->cache_class = one.rule.cache_class;
    decision->reason = one.option != nullptr ? add_lock_note(one.rule.reason, one.path)
                       : one.left.implied    ? one.rule.reason + "; its default is " + *one.left.from
                                             : one.rule.reason;
    decision->implied = one.left.implied;
    decision->rule = one.rule.id;
    decision->stands_for = normalize_path(one.path);
    if (one.rule.cache_class == CacheClass::mixed)
      for (const std::string& name : names) // the program gets links to the models on the share
        if (name.starts_with("models--") && name.find('/') == std::string::npos)
          decision->models.push_back(name);
    if (decision->models.empty() ||
        std::ranges::none_of(m_program.chain, [&](const ChainLink* link) { return names_hosts(m_launch, *link); }))
      return m_out.push_back(*std::move(decision));
    leave(one, "its models would be lost", // the links are made on this host only
          warning("SF408", *one.left.from,
                  "it holds models too, to which no links are made on the other nodes, so `" + one.left.flag +
                      "` was left: launches can fail by the dataset cache race",
                  "start `sharefs run` on each node, or give the model as a directory"));
  }

  /// Reports that this host has no directory for this cache. It is an error if the user named a cache of data; a
  /// warning if another user has taken the name of this user's directory, because nobody may stop the launches of
  /// others, and for code, without which a launch goes on.
  void report_no_local_directory(const Cache& one) {
    const LocalRoot& root = m_launch.facts.local();
    const auto severity =
        !one.left.implied && root.directory.empty() && !root.taken ? Severity::error : Severity::warning;
    auto found = no_place(root, severity);
    if (severity == Severity::warning)
      found.message += "; they were left where they are";
    m_out.push_back(warning(found.code, found.subject, std::move(found.message), std::move(found.hint), severity));
  }

  const Launch& m_launch;
  const Program& m_program;
  const Row* m_framework;
  const Names* m_container; ///< host directories that the container sees under the same names; nullptr: no container
  bool m_guarded;
  std::vector<Assignment> m_options;
  Decisions m_out;
};

/// Returns the directories of this host that the container started by argv[at] can write to under the same names.
/// Returns none if the container runs as another user, or if it existed before this command: its mounts are not known.
Names find_bound_directories(const Launch& launch, std::size_t at, const Program& inside) {
  Names seen;
  const Row* row = find_opaque(launch.argv[at]);
  const auto& argv = launch.argv;
  const bool made_now = any_listed(std::span(argv).subspan(inside.begin), "run exec shell");
  if (!made_now || (!row->has("same") && contains(argv, "exec")))
    return seen;
  for (const Assignment& one : program_options(argv, inside)) {
    const bool binds = is_listed(one.name, row->get("binds"));
    for (const std::string& part : binds ? split(one.value, ',') : Names())
      if (const auto ends = split(part, ':'); ends.size() == 1 || (ends[0] == ends[1] && ends.back() != "ro"))
        seen.push_back(ends[0]);
    const auto uid = parse_number<uid_t>(one.value.substr(0, one.value.find(':'))); // a name is another user
    if (!row->has("same") && is_listed(one.name, "-u --user --userns") && uid != ::geteuid())
      return {};
  }
  return seen;
}

} // namespace

std::vector<Assignment> program_options(const Argv& argv, const Program& program) {
  std::vector<Assignment> found;
  for (std::size_t i = program.begin; i < program.end; ++i) {
    const std::string& word = argv[i];
    if (word.size() < 2 || word[0] != '-')
      continue;
    const auto equals = word.find('=');
    Assignment one{.name = word.substr(0, equals)};
    if (equals != std::string::npos)
      one.value_begin = equals + 1;
    else if (i + 1 < program.end && !argv[i + 1].starts_with('-'))
      ++i;
    else
      continue; // the option has no value: argparse would refuse that for the flags of the table
    one.index = i;
    one.value = argv[i].substr(one.value_begin);
    found.push_back(std::move(one));
  }
  return found;
}

Decisions decide_caches(const Launch& launch, const Program& program, const Row* framework) {
  if (is_plain_tool(program))
    return {};
  CacheDecider decider(launch, program, framework);
  Decisions decided = decider.decide_options();
  if (!launch.walk.understood) // no word may change; decisions of the guard stay, but for the `{}` of xargs
    std::erase_if(decided, [](const Decision& one) {
      return one.action != Action::guard || one.from.value_or("").find('{') != std::string::npos;
    });
  if (framework == nullptr || !framework->has("keeps")) // else it fills a cache on purpose
    append(decided, decider.decide_variables());
  return decided;
}

Decisions decide_in_container(const Launch& launch) {
  const bool here = launch.walk.container && std::ranges::none_of(launch.walk.chain, [&](const ChainLink& link) {
                      return on_unknown_nodes(launch, link) || names_hosts(launch, link);
                    });
  if (!here)
    return {};
  Program inside;
  inside.begin = *launch.walk.container + 1;
  inside.end = launch.argv.size();
  inside.directory = launch.start.directory;
  inside.python = true;
  const std::vector<Assignment> options = program_options(launch.argv, inside);
  const Row* framework = nullptr;
  for (std::size_t i = inside.begin; i < inside.end && framework == nullptr; ++i) {
    Program named;
    named.name = launch.argv[i];
    const bool value = std::ranges::find(options, i, &Assignment::index) != options.end();
    if (!value || !named.name.starts_with('/')) // a path as an option's value is no program
      framework = framework_of(named, launch.argv);
  }
  const Names seen = find_bound_directories(launch, *launch.walk.container, inside);
  Decisions decided = CacheDecider(launch, inside, framework, &seen).decide_options();
  std::erase_if(decided, [](const Decision& one) { return one.action != Action::rewrite; });
  return decided;
}

} // namespace sharefs::cachefix
