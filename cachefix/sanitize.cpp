#include "cachefix/sanitize.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/launch.hpp"

#include <algorithm>
#include <iterator>

namespace sharefs::cachefix {
namespace {

bool is_switched_off(const Setting& setting) {
  const auto found = setting.environment.find("SHAREFS_CACHEFIX");
  return found != setting.environment.end() && found->second == "0";
}

/// A framework whose row goes by the name of a file must be imported where the file can be read.
const Framework* framework_of(const Launch& launch, const Program& program) {
  const Framework* framework = cachefix::framework_of(program, launch.argv);
  const std::string* source =
      framework == nullptr || framework->imports.empty() ? nullptr : launch.source_text(program);
  if (source == nullptr)
    return framework;
  const bool imports =
      any_word(framework->imports, ' ', [&](std::string_view name) { return source->find(name) != std::string::npos; });
  return imports ? framework : nullptr;
}

/// Of a batch script: what would be set around it is nothing that the node there knows of.
Decisions only_said(Decisions decided) {
  const auto change = std::ranges::find_if(decided, &Decision::is_change);
  if (change == decided.end())
    return decided;
  const Decision said = warning("SF415", change->flag,
                                "programs in the batch script use this cache on shared storage; nothing was changed",
                                "put `sharefs run --` in front of them, or submit a copy by `sharefs cachefix script`");
  std::erase_if(decided, std::mem_fn(&Decision::is_change));
  decided.push_back(said);
  return decided;
}

/// What is left because a program may stay offline is said louder where nobody knows whether it does.
void say_if_unknown(const Launch& launch, const Program& program, Decisions& decided) {
  for (const char* name : {"HF_DATASETS_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"})
    if (is_unknown(launch.variable(program, name).value_or("")))
      for (Decision& one : decided)
        if (one.diagnosis && one.diagnosis->code == "SF419") {
          one.diagnosis->severity = Severity::warning;
          one.diagnosis->message =
              "stays: `" + std::string(name) + "` is not known here, and offline what is complete there is only read";
          one.diagnosis->hint = "write its value out";
        }
}

Decisions decide_program(const Launch& launch, const Program& program, const Framework* framework,
                         std::vector<ScriptFound>& scripts) {
  // Neither what is set around a text in which something starts in a container nor its arguments are changed.
  if (program.kind == ProgramKind::shell) {
    Decisions decisions = decide_variables(launch, program, framework, {});
    auto inside = decide_shell(launch, program, decisions, scripts);
    if (inside && is_in_container(*inside) && std::ranges::any_of(decisions, &Decision::is_change)) {
      decisions.clear();
      inside = decide_shell(launch, program, {}, scripts);
    }
    if (inside)
      append(decisions, *std::move(inside));
    return decisions;
  }
  Decisions decisions = decide_flags(launch, program, framework);
  auto script = decide_shell(launch, program, decisions, scripts);
  if (script && is_in_container(*script))
    return *std::move(script);
  append(decisions, script ? *std::move(script) : decide_variables(launch, program, framework, decisions));
  say_if_unknown(launch, program, decisions);
  return starts_later(launch, program) ? only_said(std::move(decisions)) : decisions;
}

/// The launcher of a program that starts it on nodes that are not known now; nullptr: there is none. A batch script is
/// not started by its words.
const ChainLink* unknown_starter(const Launch& launch, const Program& program) {
  for (const ChainLink& link : launch.walk.links(program))
    if (link.launcher->tail != Tail::batch && on_unknown_nodes(launch, link))
      return &link;
  return nullptr;
}

/// In place of what was decided here, for a program that starts on nodes that are not known now: sharefs decides there,
/// by what it finds there.
Decisions on_the_node(const Launch& launch, const Program& program, const ChainLink* starter, Decisions decided) {
  const bool batch = starter == nullptr;
  const auto change = std::ranges::find_if(decided, &Decision::is_change);
  if (change == decided.end() || !launch.setting.editable ||
      (batch && (!launch.setting.unknown_nodes || program.kind == ProgramKind::shell)))
    return decided;
  const std::string by = batch ? "the batch system" : starter->name;
  const std::string flag = change->flag;
  std::erase_if(decided, [](const Decision& one) {
    const bool offline = one.diagnosis && one.diagnosis->code == "SF419"; // it holds there, too
    return one.action != Action::leave && !offline;
  });
  if (launch.rules.node.empty()) {
    decided.push_back(warning("SF421", by,
                              "starts it on nodes that are not known now, where sharefs may not be installed, so `" +
                                  flag + "` was left on shared storage",
                              "install sharefs in /usr or on the share, or put `sharefs run --` behind it"));
    return decided;
  }
  // Behind the starter, or behind the assignments in front of a command of shell text.
  std::size_t at = program.index;
  const auto links = launch.walk.links(program);
  for (auto number = links.rbegin(); number != links.rend(); ++number) {
    const ChainLink& link = *number;
    if (&link == starter || (batch && link.launcher->assignments && link.index == 0))
      break;
    at = link.index;
  }
  std::vector<Edit> edits;
  for (const ChainLink& link : links) { // ours must not be the `--` that a launcher in front takes for its own
    const auto first =
        std::find(launch.argv.begin() + static_cast<std::ptrdiff_t>(link.tail_begin), launch.argv.end(), "--");
    const auto ours = launch.argv.begin() + static_cast<std::ptrdiff_t>(at);
    if (link.index >= at || link.launcher->dashes != Dashes::first_lost || link.options.ended_by_dashes || first < ours)
      continue;
    if (first != launch.argv.end()) {
      decided.push_back(warning("SF421", by,
                                "starts it on nodes that are not known now, and " + link.name + " drops a `--`, so `" +
                                    flag + "` was left on shared storage",
                                "put `sharefs run --` behind " + by));
      return decided;
    }
    edits.push_back({link.tail_begin, false, 0, 0, "", {"--"}});
  }
  edits.push_back({at, false, 0, 0, "", launch.rules.node});
  decided.push_back({.action = Action::set,
                     .flag = by,
                     .to = join(launch.rules.node, " "),
                     .rule = "node",
                     .reason = by + " starts it on nodes that are not known now: sharefs looks and decides there",
                     .edits = std::move(edits)});
  return decided;
}

} // namespace

bool is_in_container(const Decisions& decisions) {
  return std::ranges::any_of(decisions,
                             [](const Decision& one) { return one.diagnosis && one.diagnosis->code == "SF404"; });
}

bool starts_later(const Launch& launch, const Program& program) {
  return std::ranges::any_of(launch.walk.links(program),
                             [](const ChainLink& link) { return link.launcher->tail == Tail::batch; });
}

Found decide(const Argv& argv, const Setting& setting, Stakes& stakes, const Rules& rules) {
  Found found;
  const Deeper deeper(stakes.budget());
  if (!deeper)
    return found;
  found.walk = walk(argv, setting.directory, stakes.budget());
  Setting own = setting;
  const Launch launch{argv, found.walk, own, stakes, rules};
  std::vector<const Framework*> frameworks;
  for (const Program& program : found.walk.programs) {
    frameworks.push_back(framework_of(launch, program));
    if (const bool from_stdin = program.name == "-" && argv[program.index] != "-";
        program.kind != ProgramKind::shell && !from_stdin)
      found.scripts.push_back(
          {program.index, program.name, frameworks.back() == nullptr ? "" : std::string(frameworks.back()->name)});
  }
  const bool sees_to_itself =
      std::ranges::any_of(found.walk.chain, [](const ChainLink& link) { return link.launcher->name == "sharefs"; });
  if (!rules.enabled || is_switched_off(setting) || sees_to_itself || !stakes.any_shared())
    return found;
  for (const Diagnosis& problem : found.walk.problems)
    found.decisions.push_back(reported(problem.severity, problem.code, problem.subject, problem.message, problem.hint));
  for (const Program& program : found.walk.programs)
    for (const ChainLink& link : launch.walk.links(program))
      if (const std::string name = launch.first_variable(program, link.launcher->container_variables);
          !name.empty() && found.walk.understood) {
        found.walk.understood = false;
        found.decisions.push_back(warning("SF404", link.name, "with `" + name + "` " + std::string(k_in_container),
                                          std::string(k_into_container)));
      } else if (const std::string elsewhere(link.launcher->elsewhere_variable);
                 !elsewhere.empty() && found.walk.understood && launch.variable(program, elsewhere)) {
        found.walk.understood = false;
        found.decisions.push_back(
            warning("SF402", link.name,
                    "with `" + elsewhere + "` it runs its command on another machine, with files of its own",
                    "let it run `sharefs run -- CMD...`; nothing of this command was changed"));
      }
  if (!found.walk.understood)
    return found;
  Decisions decided = add_variable_files(launch, own.environment);
  append(decided, add_source_caches(launch, own.environment));
  for (std::size_t i = 0; i < found.walk.programs.size(); ++i) {
    const Program& program = found.walk.programs[i];
    append(decided, on_the_node(launch, program, unknown_starter(launch, program),
                                decide_program(launch, program, frameworks[i], found.scripts)));
  }
  if (found.walk.programs.size() > 1 && is_in_container(decided)) // what is set for one of them reaches all
    std::erase_if(decided, std::mem_fn(&Decision::is_change));
  for (const Program& program : found.walk.programs)
    append(decided, decide_guard(launch, program));
  append(decided, carry(launch, decided));
  append(found.decisions, std::move(decided));
  return found;
}

Sanitized assemble(const Argv& argv, Decisions decisions, Stakes& stakes) {
  Sanitized out;
  out.argv = edited(argv, decisions);
  bool explicit_error = false;
  for (Decision& one : decisions) {
    if (one.diagnosis) {
      explicit_error = explicit_error || one.diagnosis->severity == Severity::error;
      add_once(out.diagnoses, *std::move(one.diagnosis));
      continue;
    }
    if (one.variable && one.kind == ChangeKind::environment)
      out.set[one.flag] = *one.to;
    if (!one.directory.empty())
      out.directories[one.directory] = one.stands_for;
    for (ModelLink& link : one.links)
      add_once(out.links, std::move(link));
    if (one.copy)
      add_once(out.copies, *one.copy);
    add_once(out.decisions, std::move(one));
  }
  if (explicit_error) // it says the same of what nobody named
    std::erase_if(out.diagnoses,
                  [](const Diagnosis& one) { return one.code == "SF405" && one.severity == Severity::warning; });
  // Of both where they differ. A file that was made for the launch lies in that for data.
  const std::set<std::string> roots = out.roots();
  for (const Holds holds : {Holds::data, Holds::code})
    if (const auto& local = stakes.local_if_asked(holds); local && roots.contains(local->directory)) {
      const auto& other = stakes.local_if_asked();
      if (holds == Holds::data || !other || other->directory != local->directory)
        std::ranges::move(diagnose(*local, Severity::error), std::back_inserter(out.diagnoses));
    }
  return out;
}

std::set<std::string> Sanitized::roots() const {
  std::set<std::string> all;
  for (const auto& [directory, shared] : directories)
    all.insert(parent_path(directory));
  return all;
}

Decisions Sanitized::that_change(bool something) const {
  Decisions all;
  std::ranges::copy_if(decisions, std::back_inserter(all),
                       [&](const Decision& one) { return one.is_change() == something; });
  return all;
}

Sanitized unread(const Argv& argv, const std::string& subject, const Budget& budget) {
  Sanitized out;
  out.argv = argv;
  out.understood = false;
  out.diagnoses = {{Severity::warning, "SF403", to_utf8(subject),
                    budget.spent + ", so sharefs stopped reading and changed nothing",
                    "let it run `sharefs run -- CMD...`", ""}};
  return out;
}

Sanitized sanitize(const Argv& argv, const Start& start, Stakes& stakes, const Rules& rules) {
  const Setting setting = setting_of(start);
  Found found = decide(argv, setting, stakes, rules);
  if (stakes.budget().is_spent() && rules.enabled && !is_switched_off(setting) && stakes.any_shared())
    return unread(argv, "command line", stakes.budget());
  Sanitized out = assemble(argv, std::move(found.decisions), stakes);
  for (const ChainLink& link : found.walk.chain)
    out.chain.emplace_back(link.name, link.index);
  out.scripts = std::move(found.scripts);
  out.understood = found.walk.understood;
  if (!out.directories.empty())
    out.hosts = hosts_of({argv, found.walk, setting, stakes, rules});
  return out;
}

} // namespace sharefs::cachefix
