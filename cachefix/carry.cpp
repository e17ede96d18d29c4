// Brings variables to the program: past launchers that empty the environment, and to other hosts.
#include "cachefix/launch.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace sharefs::cachefix {
namespace {

/// The means by which variables get past a launcher.
enum class Need {
  nothing, ///< the launcher hands on its environment
  words,   ///< `/usr/bin/env NAME=value...` in front of the command
  list,    ///< a longer list, as no words fit in front of a script: `sbatch --export=...,NAME=value`
  impossible,
};

/// Returns the word with the list that limits what the launcher hands on: that of srun --export, or the launcher's own
/// if a variable stands for the option; empty if no list does.
std::string find_cutting_list(const Launch& launch, const Program& program, const ChainLink& link) {
  const GivenOption* const given = link.options.last(Means::assign_list);
  const auto list = given != nullptr ? given->value : launch.variable(program, link.launcher->get("export"));
  if (!list || any_word(*list, ',', [](std::string_view part) { return is_listed(trim(part), "ALL all"); }))
    return {};
  return given != nullptr ? given->name + "=" + given->value : launch.argv[link.index];
}

/// True if one of deepspeed's environment files sets PYTHONPATH: deepspeed would hand on that value.
bool sets_python_path(const Launch& launch, const Program& program) {
  const std::string name = launch.variable(program, "DS_ENV_FILE").value_or(".deepspeed_env");
  return std::ranges::any_of(std::array{launch.home(program), program.directory}, [&](const std::string& directory) {
    return launch.facts.find(join_path(directory, name), PathFact::text).content.find("PYTHONPATH=") !=
           std::string::npos;
  });
}

/// Returns what one launcher needs so that variables get past it.
Need find_need(const Launch& launch, const Program& program, const ChainLink& link) {
  const Launcher& launcher = *link.launcher;
  const OptionsRead& options = link.options;
  if (launcher.carries == Carries::python)
    return !names_hosts(launch, link) || (launch.rules.guard && !sets_python_path(launch, program)) ? Need::nothing
                                                                                                    : Need::impossible;
  const bool cut = options.last(Means::clear) != nullptr || options.last(Means::unset) != nullptr ||
                   !find_cutting_list(launch, program, link).empty();
  const bool hands_on = launcher.carries == Carries::yes || options.last(Means::hands_on) != nullptr ||
                        options.last(Means::assign_pair) != nullptr;
  if (!cut && hands_on)
    return Need::nothing;
  if (takes_words(launch, program, link))
    return Need::words;
  if (const GivenOption* list = options.last(Means::assign_list); // with NONE a script gets the environment of a login
      launcher.tail == Tail::batch && list != nullptr && !is_listed(list->value, "NONE NIL"))
    return Need::list;
  // An option that is not known may name hosts.
  return cut || !options.problem.empty() || names_hosts(launch, link) || on_unknown_nodes(launch, link)
             ? Need::impossible
             : Need::nothing;
}

/// Returns the decision that adds our variables as words or to the launcher's list; nullopt if the program keeps all of
/// them.
std::optional<Decision> carry_by(Need need, const Launch& launch, const Program& program, const ChainLink& link,
                                 const std::map<std::string, std::string>& variables) {
  Argv pairs;
  bool implied = true;
  for (const auto& [name, value] : variables) {
    if (contains(program.kept, name))
      continue;
    pairs.push_back(name + "=" + value);
    implied = implied && (name == "PYTHONPATH" || name.starts_with("SHAREFS_"));
  }
  if (pairs.empty())
    return std::nullopt;
  Decision decision{.action = Action::set,
                    .flag = link.name,
                    .rule = "propagate." + link.name,
                    .reason = "so that variables pass " + link.name,
                    .implied = implied};
  if (need == Need::list) {
    const GivenOption& list = *link.options.last(Means::assign_list);
    const std::size_t end = launch.argv[list.value_index].size();
    const std::string more = "," + join(pairs, ",");
    decision.flag = list.name;
    decision.to = list.name + "=" + list.value + more;
    decision.index = list.value_index;
    decision.edits = {{list.value_index, end, end, more}};
    return decision;
  }
  if (!link.launcher->row.has("assignments"))
    pairs.insert(pairs.begin(), "/usr/bin/env");
  decision.to = shell_join(pairs);
  decision.edits = {{link.command, 0, 0, "", pairs}};
  return decision;
}

/// Returns what one launcher does so that the guard does not get past it; its `code` is empty if it does nothing.
Mention find_loss_by(const ChainLink& link, const Launch& launch, const Program& program) {
  const std::string& word = launch.argv[link.index];
  const std::string names = link.launcher->get("containers");
  for (const auto& [name, value] : names.empty() ? Environment() : launch.all_variables(program))
    if (is_listed(name, names))
      return starts_in_container(link.name, "with `" + name + "` ");
  if (const GivenOption* option = link.options.last(Means::isolates))
    return {1, "SF407", word + " " + option->name,
            option->name == "-S" ? "runs no sitecustomize, so it is not guarded"
                                 : "does not read PYTHONPATH, so it is not guarded"};
  if (link.options.last(Means::clear) != nullptr)
    return {1, "SF407", word, "empties the environment, so what it starts is not guarded"};
  if (const std::string list = find_cutting_list(launch, program, link);
      !list.empty() && !contains(program.kept, "PYTHONPATH"))
    return {1, "SF407", list, "hands on no other variables, so what it starts is not guarded"};
  const bool named = std::ranges::any_of(link.options.given, [](const GivenOption& one) {
    return one.means == Means::assign && one.value == "PYTHONPATH";
  });
  const Need need = find_need(launch, program, link);
  if (!named && (need == Need::impossible || (need == Need::words && names_hosts(launch, link)))) // mpirun -x
    return {1, "SF407", word, "does not hand variables on, so what it starts is not guarded"};
  return {};
}

} // namespace

bool names_hosts(const Launch& launch, const ChainLink& link) {
  if (link.options.last(Means::hosts) != nullptr)
    return true;
  const std::string file = link.launcher->get("hostfile");
  return !file.empty() && !trim(launch.facts.find(file, PathFact::text).content).empty();
}

bool on_unknown_nodes(const Launch& launch, const ChainLink& link) {
  const Program nobody;
  const auto variable = [&](std::string_view name) { return launch.variable(nobody, name).value_or(""); };
  if (is_listed(link.launcher->name, words_of("remote"))) // srun in a job of one node starts its processes here
    return link.launcher->name != "srun" || variable("SLURM_JOB_NUM_NODES") != "1" ||
           variable("SLURMD_NODENAME").empty();
  if (link.launcher->tail != Tail::contexts || names_hosts(launch, link))
    return false;
  return (!variable("SLURM_JOB_ID").empty() && variable("SLURM_JOB_NUM_NODES") != "1") ||
         !variable("PBS_NODEFILE").empty() || !variable("LSB_HOSTS").empty() || !variable("PE_HOSTFILE").empty();
}

bool takes_words(const Launch& launch, const Program& program, const ChainLink& link) {
  if (link.command == 0 || link.launcher->tail == Tail::batch || link.options.last(Means::command_file) != nullptr)
    return false;
  const std::string& command = launch.argv[link.command];
  const auto is_file = [&] { return !launch.find_file(program, command, false).empty(); };
  if (command.find_first_of(" \t\n;&|<>()") != std::string::npos) // bsub gives a shell 'cd job && python t.py'
    return is_file();
  return link.launcher->tail != Tail::contexts || command.find('/') != std::string::npos ||
         find_launcher(launch.argv, link.command, launch.argv.size()) != nullptr || is_file();
}

bool can_carry(const Launch& launch, const Program& program) {
  return std::ranges::none_of(program.chain, [&](const ChainLink* link) {
    const Need need = find_need(launch, program, *link);
    return need == Need::impossible || (need != Need::nothing && !link->certain);
  });
}

Mention find_loss(const Launch& launch) {
  for (const Mention& why : launch.walk.problems)
    if (why.code != "SF401")
      return why;
  for (const Program& program : launch.walk.programs) {
    if (is_plain_tool(program))
      continue;
    for (const ChainLink* link : program.chain)
      if (Mention loss = find_loss_by(*link, launch, program); !loss.code.empty())
        return loss;
    const Assignment* path = program.assignment_of("PYTHONPATH");
    if (path != nullptr && path->value.find("PYTHONPATH") == std::string::npos)
      return {1, "SF407", "PYTHONPATH=", "overwrites PYTHONPATH, so what it starts is not guarded"};
    if (path == nullptr && program.takes_away("PYTHONPATH"))
      return {1, "SF407", "PYTHONPATH", "is taken away, so what it starts is not guarded"};
    if (const Assignment* off = program.assignment_of("SHAREFS_GUARD"); off != nullptr && off->value == "0")
      return {1, "SF407", "SHAREFS_GUARD=0", "switches the guard off"};
    if (launch.variable(program, "RAY_ADDRESS").value_or("local") != "local")
      return {1, "SF407", "RAY_ADDRESS",
              "names a Ray cluster, whose workers are guarded if `sharefs run` has started that, too"};
  }
  return {};
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

Decisions carry(const Launch& launch, const Decisions& decided) {
  Decisions out;
  std::set<const ChainLink*> done;
  for (const Program& program : launch.walk.programs)
    for (const ChainLink* link : program.chain) {
      // The variables of all programs, but for those that a word behind this launcher assigns.
      std::map<std::string, std::string> variables;
      for (const Decision& one : decided)
        if (one.variable && one.index.value_or(0) <= link->index)
          variables.emplace(one.flag, one.to.value_or(""));
      if (variables.empty() || !done.insert(link).second)
        continue;
      const Need need = find_need(launch, program, *link);
      if ((need == Need::words || need == Need::list) && link->certain)
        if (auto carried = carry_by(need, launch, program, *link, variables))
          out.push_back(*std::move(carried));
    }
  return out;
}

} // namespace sharefs::cachefix
