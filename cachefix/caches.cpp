// Decides about the options of the user's program that name caches. The program may run in a container.
#include "cachefix/launch.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <charconv>
#include <unistd.h>

namespace sharefs::cachefix {
namespace {

/// True if the path lies in one of the directories.
bool is_in(const Names& directories, const std::string& path) {
  return std::ranges::any_of(directories, [&](const std::string& one) { return is_under(path, one); });
}

/// Decides about the options of one program, or of the program in a container.
class FlagDecider {
 public:
  FlagDecider(const Launch& launch, const Program& program, const Row* framework, const Names* container = nullptr)
      : m_launch(launch), m_program(program), m_framework(framework), m_container(container),
        m_guarded(container == nullptr && launch.is_guarded(program)),
        m_options(program_options(launch.argv, program)) {
    Names paths; // one request for all of them costs less than one for each
    for (const Assignment& one : m_options)
      if (const auto path = launch.resolve_path(program, one.value))
        paths.push_back(*path);
    launch.facts.find_all(paths);
  }

  Decisions decide() {
    for (const Assignment& one : m_options) {
      const auto rule = rule_for_flag(m_program, m_framework, one.name, m_launch.rules.user);
      const auto path = find_shared_path(one.value);
      if (!rule && path)
        keep_option(one, {.name = one.name}, "no rule is about this flag");
      else if (!rule)
        continue;
      else if (!is_moved(rule->cache_class))
        keep_option(one, *rule, rule->reason);
      else if (!path)
        keep_option(one, *rule, one.value.empty() ? "the value is empty" : "lies on this host's own disk");
      else
        decide_cache(one, *rule, *path);
    }
    return std::move(m_out);
  }

 private:
  void keep_option(const Assignment& one, const CacheRule& rule, std::string why, std::optional<Decision> report = {}) {
    m_out.push_back(keep(one.name, one.index, one.value, rule.cache_class, std::move(why)));
    if (report)
      m_out.push_back(*std::move(report));
  }

  /// Returns the path of a value on this host, if it lies on shared storage. In a container only paths that it sees
  /// under the host's names count.
  [[nodiscard]] std::optional<std::string> find_shared_path(const std::string& value) const {
    const bool here = m_container == nullptr || find_opaque(m_launch.argv[*m_launch.walk.container])->has("same") ||
                      is_in(*m_container, normalize_path(value));
    return here ? m_launch.find_shared_path(m_program, value) : std::nullopt;
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
  void decide_cache(const Assignment& one, const CacheRule& rule, const std::string& path) {
    const bool mixed = rule.cache_class == CacheClass::mixed;
    const bool by_table = mixed && !rule.by_user;
    const bool asked = rule.by_user || (m_launch.rules.guard && m_launch.rules.guard->build == "local");
    if (!rule.by_user && locks_are_enough(m_launch, path))
      return keep_option(one, rule, "file locks exclude other hosts there, and caches.when is racy");
    if (mixed && !asked && m_guarded)
      return m_out.push_back(guard_cache(m_launch, one.name, one.index, one.value, path));
    if (!rule.by_user && !mixed && holds_models(path))
      return keep_option(one, rule, "models are read from it, as another option shows");
    if (by_table && m_launch.is_offline(m_program))
      return leave_option(one, rule, path, "offline, what lies there is needed");
    const sys::Entry& there = m_launch.facts.find(path, PathFact::names);
    const std::string left = ", so `" + one.name + "` was left";
    if (there.error_number == EACCES)
      return keep_option(
          one, rule, "it may not be read",
          warning("SF423", one.value, "this user may not read it" + left,
                  "`ls -ld " + shell_quote(path) +
                      "` says who may; if that is you by a group, `sharefs status` says what the server goes by"));
    if (there.kind == sys::EntryKind::unknown)
      return keep_option(one, rule, "the share does not answer",
                         warning("SF409", one.value, "the share does not answer" + left, "run `sharefs status`"));
    if (rule.unless_prepared && !there.names.empty())
      return keep_option(one, rule, "a prepared dataset lies there, which is shared on purpose");
    const auto foreign = std::ranges::find_if(there.names, [](const std::string& name) {
      return !is_listed(name, words_of("library_files")) && name.find("___") == std::string::npos;
    });
    if (by_table && foreign != there.names.end())
      return leave_option(one, rule, path, "`" + *foreign + "` lies there",
                          warning("SF420", one.value,
                                  "`" + *foreign + "` lies there, which neither datasets nor a hub library made, so `" +
                                      one.name + "` was left: if nodes build datasets there, they race",
                                  "if it is a cache of datasets and models only, say `--local " + rule.name + "`"));
    if (mixed && !asked && there.names.empty() && m_launch.runs_no_python(m_program))
      return keep_option(one, rule, "nothing in it says that it is a cache of datasets");
    move_cache(one, rule, path, there.names);
  }

  /// Leaves the word as it is. If the program is guarded, the guard still builds what belongs into this cache.
  void leave_option(const Assignment& one, const CacheRule& rule, const std::string& path, std::string why,
                    std::optional<Decision> report = {}) {
    if (m_guarded)
      return m_out.push_back(guard_cache(m_launch, one.name, one.index, one.value, path));
    keep_option(one, rule, std::move(why), std::move(report));
  }

  void move_cache(const Assignment& one, const CacheRule& rule, const std::string& path, const Names& names) {
    Decision decision{.action = Action::rewrite,
                      .flag = one.name,
                      .index = one.index,
                      .from = one.value,
                      .to = m_launch.local_for(path),
                      .cache_class = rule.cache_class,
                      .rule = rule.id,
                      .reason = add_lock_note(m_launch, rule.reason, path),
                      .stands_for = normalize_path(path)};
    if (decision.to->empty()) {
      m_out.push_back(report_no_local_directory(m_launch, true));
      return leave_option(one, rule, path, "this host has no directory for it");
    }
    if (m_container != nullptr && !is_in(*m_container, *decision.to))
      return keep_option(one, rule, "the container does not see the node's own disk");
    decision.edits = {{one.index, one.value_begin, one.value_begin + one.value.size(), *decision.to}};
    if (rule.cache_class == CacheClass::mixed)
      for (const std::string& name : names) // the program gets links to the models on the share
        if (name.starts_with("models--") && name.find('/') == std::string::npos)
          decision.models.push_back(name);
    const auto links = m_launch.walk.links(m_program);
    if (decision.models.empty() ||
        std::ranges::none_of(links, [&](const ChainLink& link) { return names_hosts(m_launch, link); }))
      return m_out.push_back(std::move(decision));
    leave_option(one, rule, path, "its models would be lost", // the links are made on this host only
                 warning("SF408", one.value,
                         "it holds models too, to which no links are made on the other nodes, so `" + one.name +
                             "` was left: launches can fail by the dataset cache race",
                         "start `sharefs run` on each node, or give the model as a directory"));
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
    unsigned uid = 0;
    std::from_chars(one.value.data(), one.value.data() + one.value.size(), uid);
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

Decisions decide_flags(const Launch& launch, const Program& program, const Row* framework) {
  if (is_plain_tool(program))
    return {};
  Decisions decided = FlagDecider(launch, program, framework).decide();
  if (!launch.walk.understood) // no word may change; decisions of the guard stay, but for the `{}` of xargs
    std::erase_if(decided, [](const Decision& one) {
      return one.action != Action::guard || one.from.value_or("").find('{') != std::string::npos;
    });
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
  Decisions decided = FlagDecider(launch, inside, framework, &seen).decide();
  std::erase_if(decided, [](const Decision& one) { return one.action != Action::rewrite; });
  return decided;
}

} // namespace sharefs::cachefix
