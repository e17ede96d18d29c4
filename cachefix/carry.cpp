// How a variable reaches the program: through launchers that empty the environment, and to other hosts.
#include "cachefix/launch.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace sharefs::cachefix {
namespace {

// Spellings that only one of the two takes; both have -bind-to, -map-by, -host and -hostfile.
constexpr std::string_view k_open_mpi_options = "-x -mca -gmca -allow-run-as-root -pernode -N -npernode";
constexpr std::string_view k_mpich_options =
    "-genv -genvall -genvnone -genvlist -env -ppn -perhost -hosts -f -iface -rmk -launcher -bootstrap";
constexpr std::string_view k_mpich_cuts = "-genvnone -envnone -genvlist -envlist";

enum class Mpi { unknown, open_mpi, mpich };

/// Is one of the options given, in this very spelling?
bool is_spelled(const Launch& launch, const ChainLink& link, std::string_view names) {
  return std::ranges::any_of(link.options.given, [&](const GivenOption& option) {
    const std::string& word = launch.argv[option.index];
    return is_listed(word.starts_with("--") ? word.substr(1) : word, names);
  });
}

/// Which mpirun this is, by its name, its options, or what /usr/bin/mpirun is a link to.
Mpi flavour_of(const Launch& launch, const Program& program, const ChainLink& link) {
  const auto named = [](std::string_view path) {
    const auto has = [&](auto... parts) { return ((path.find(parts) != std::string_view::npos) || ...); };
    return has("openmpi", "orterun", "prterun", "open-mpi") ? Mpi::open_mpi
           : has("mpich", "hydra", "intel")                 ? Mpi::mpich
                                                            : Mpi::unknown;
  };
  const std::string& word = launch.argv[link.index];
  if (const Mpi found = named(word); found != Mpi::unknown)
    return found;
  if (is_spelled(launch, link, k_open_mpi_options))
    return Mpi::open_mpi;
  if (is_spelled(launch, link, k_mpich_options))
    return Mpi::mpich;
  const auto candidates = launch.paths_of(program, word, "/usr/local/bin:/usr/bin:/bin");
  launch.facts.expect(candidates);
  for (const std::string& path : candidates)
    if (const sys::Entry& there = launch.facts.look(path);
        there.kind == sys::EntryKind::file || there.kind == sys::EntryKind::other)
      return named(there.resolved);
  return Mpi::unknown;
}

using CarriedVariables = std::map<std::string, std::string>;

enum class Need {
  nothing,      ///< the environment passes
  env_words,    ///< NAME=value in front of env's command
  env_options,  ///< -e NAME=value
  export_list,  ///< ,NAME=value behind --export=...
  x_options,    ///< -x NAME=value
  genv_options, ///< -genv NAME value
  env_file,     ///< DS_ENV_FILE
  impossible,
};

/// A list as of srun --export: has it ALL?
bool exports_all(std::string_view list) {
  return any_word(list, ',', [](std::string_view part) { return part == "ALL"; });
}

/// What one launcher needs so that a variable passes it.
Need need_of(const Launch& launch, const Program& program, const ChainLink& link) {
  const Launcher& launcher = *link.launcher;
  if (launcher.carries == Carries::deepspeed)
    return names_hosts(launch, link) ? Need::env_file : Need::nothing;
  if (launcher.carries == Carries::mpi) {
    switch (flavour_of(launch, program, link)) {
    case Mpi::open_mpi:
      return Need::x_options;
    case Mpi::mpich:
      return is_spelled(launch, link, k_mpich_cuts) ? Need::genv_options : Need::nothing;
    case Mpi::unknown:
      return names_hosts(launch, link) ? Need::impossible : Need::nothing;
    }
  }
  const bool clears = link.options.last(Means::clear) != nullptr;
  if (launcher.assignments)
    return clears || link.options.last(Means::unset) != nullptr ? Need::env_words : Need::nothing;
  if (clears)
    return Need::env_options;
  if (const GivenOption* list = link.options.last(Means::assign_list))
    return exports_all(list->value)                                                             ? Need::nothing
           : any_word(list->value, ',', [](auto part) { return !is_listed(part, "NONE NIL"); }) ? Need::export_list
                                                                                                : Need::impossible;
  if (!launcher.export_variable.empty())
    if (const auto list = launch.variable(program, launcher.export_variable); list && !exports_all(*list))
      return Need::impossible;
  return Need::nothing;
}

Decision carry_one(const Launch& launch, const ChainLink& link, Need need, const std::string& name,
                   const std::string& value) {
  const std::string pair = name + "=" + value;
  Decision decision{.action = Action::set,
                    .flag = link.name,
                    .to = pair,
                    .rule = "propagate." + link.name,
                    .reason = "so that " + name + " passes " + link.name,
                    .implied = name == "PYTHONPATH" || name.starts_with("SHAREFS_")};
  const auto insert = [&decision](std::size_t at, std::vector<std::string> words) {
    if (words.size() > 1)
      decision.flag = words.front();
    decision.edits.push_back({at, 0, 0, "", std::move(words)});
  };
  if (need == Need::env_words)
    insert(link.tail_begin, {pair});
  else if (need == Need::env_options)
    insert(link.options_begin, {"-e", pair});
  else if (need == Need::genv_options)
    insert(link.options_begin, {"-genv", name, value});
  else if (need == Need::x_options)
    for (const std::size_t context : link.contexts) // of each command between `:` for itself
      insert(context, {"-x", pair});
  else if (need == Need::export_list) {
    const GivenOption& list = *link.options.last(Means::assign_list);
    const std::size_t end = launch.argv[list.value_index].size();
    decision.flag = list.name;
    decision.index = list.value_index;
    decision.edits = {{list.value_index, end, end, "," + pair}};
  }
  return decision;
}

/// `-x NAME`: the launcher hands on what the environment has.
bool is_named(const ChainLink& link, const std::string& name) {
  return std::ranges::any_of(link.options.given, [&](const GivenOption& option) {
    return option.means == Means::assign && option.value == name;
  });
}

/// The lines of the files that deepspeed would read, in its order.
std::string env_file_of_deepspeed(const Launch& launch, const Program& program) {
  const std::string name = launch.variable(program, "DS_ENV_FILE").value_or(".deepspeed_env");
  std::vector<std::string> paths{join_path(launch.home(program), name)};
  add_once(paths, join_path(program.directory, name));
  std::string lines;
  for (const std::string& path : paths) {
    lines += launch.facts.look(path, Look::text).content;
    if (!lines.empty() && lines.back() != '\n')
      lines += '\n';
  }
  return lines;
}

/// Those lines, and ours behind them: the last of a name counts.
void write_env_file(const Launch& launch, const Program& program, const ChainLink& link,
                    const CarriedVariables& variables, Decisions& out) {
  const std::string& root = launch.facts.local().directory;
  if (root.empty())
    return;
  std::string content = env_file_of_deepspeed(launch, program);
  for (const auto& [variable, value] : variables)
    content += variable + "=" + value + "\n";
  // Named by its content: a job that is just being started never finds the lines of another in its file.
  const std::string path = root + "/deepspeed_env-" + key_of(content);
  out.push_back({.action = Action::set,
                 .kind = ChangeKind::file,
                 .flag = path,
                 .to = path,
                 .rule = "propagate." + link.name,
                 .reason = "deepspeed hands only the variables of this file to the other nodes; the lines of your "
                           ".deepspeed_env files are in it",
                 .file = VariableFile{path, content}});
  if (auto set = set_variable(launch, program, "DS_ENV_FILE", path)) {
    set->rule = "propagate." + link.name;
    set->reason = "names the file with the variables for the other nodes";
    out.push_back(*std::move(set));
  }
}

/// Can a value stand in .deepspeed_env, -x and --export lists as it is?
bool is_plain_value(const std::string& value) {
  return std::ranges::all_of(value, [](unsigned char c) {
    return c < 128 &&
           (std::isalnum(c) != 0 || c == '_' || c == '.' || c == '/' || c == '-' || c == '+' || c == '@' || c == ':');
  });
}

} // namespace

bool names_hosts(const Launch& launch, const ChainLink& link) {
  if (link.options.last(Means::hostfile) != nullptr || link.options.last(Means::remote) != nullptr)
    return true;
  const std::string file(link.launcher->default_hostfile);
  return !file.empty() && !trim(launch.facts.look(file, Look::text).content).empty();
}

bool on_unknown_nodes(const Launch& launch, const ChainLink& link) {
  const Program nobody;
  const auto variable = [&](std::string_view name) { return launch.variable(nobody, name).value_or(""); };
  if (link.launcher->tail == Tail::batch)
    return true;
  if (link.launcher->name == "srun") // on the only node of a job it starts processes here
    return variable("SLURM_JOB_NUM_NODES") != "1" || variable("SLURMD_NODENAME").empty();
  if (link.launcher->carries != Carries::mpi || names_hosts(launch, link))
    return false;
  return (!variable("SLURM_JOB_ID").empty() && variable("SLURM_JOB_NUM_NODES") != "1") ||
         !variable("PBS_NODEFILE").empty() || !variable("LSB_HOSTS").empty() || !variable("PE_HOSTFILE").empty();
}

bool runs_elsewhere(const Launch& launch, const Program& program) {
  return std::ranges::any_of(launch.walk.links(program), [&](const ChainLink& link) {
    return link.launcher->carries != Carries::yes && names_hosts(launch, link);
  });
}

std::string isolating_option(const ChainLink& link) {
  if (link.launcher->name == "python")
    for (const GivenOption& option : link.options.given)
      if (is_listed(option.name, "-I -E -S"))
        return option.name;
  return {};
}

bool can_carry(const Launch& launch, const Program& program) {
  return std::ranges::none_of(launch.walk.links(program), [&](const ChainLink& link) {
    return need_of(launch, program, link) == Need::impossible;
  });
}

Mention loss_of(const Launch& launch) {
  for (const Diagnosis& why : launch.walk.problems)
    if (why.code != "SF401")
      return {1, why.code, why.subject, why.message};
  for (const Program& program : launch.walk.programs) {
    if (is_plain_tool(program.name))
      continue;
    for (const ChainLink& link : launch.walk.links(program)) {
      const std::string& word = launch.argv[link.index];
      const Need need = need_of(launch, program, link);
      if (const std::string option = isolating_option(link); !option.empty())
        return {1, "SF407", word + " " + option, "does not read PYTHONPATH, so it is not guarded"};
      if (link.options.last(Means::clear) != nullptr)
        return {1, "SF407", word, "empties the environment, so what it starts is not guarded"};
      if (const GivenOption* list = link.options.last(Means::assign_list); list != nullptr && need != Need::nothing)
        return {1, "SF407", list->name + "=" + list->value,
                "hands on no other variables, so what it starts is not guarded"};
      const bool to_hosts = (need == Need::x_options || need == Need::genv_options) && names_hosts(launch, link);
      if (need == Need::impossible || to_hosts)
        return {1, "SF407", word, "does not hand variables on, so what it starts is not guarded"};
    }
    const Assignment* path = program.assignment_of("PYTHONPATH");
    if (path != nullptr && path->value.find("PYTHONPATH") == std::string::npos)
      return {1, "SF407", "PYTHONPATH=", "overwrites PYTHONPATH, so what it starts is not guarded"};
    if (path == nullptr && program.takes_away("PYTHONPATH"))
      return {1, "SF407", "PYTHONPATH", "is taken away, so what it starts is not guarded"};
  }
  return {};
}

Decisions carry(const Launch& launch, const Decisions& decided) {
  CarriedVariables variables; // what `set` means for one program it means for all on one command line
  for (const Decision& one : decided)
    if (one.variable)
      variables.emplace(one.flag, one.to.value_or(""));
  Decisions out;
  std::set<const ChainLink*> done;
  for (const Program& program : launch.walk.programs)
    for (const ChainLink& link : launch.walk.links(program)) {
      if (variables.empty() || !done.insert(&link).second)
        continue;
      const Need need = need_of(launch, program, link);
      const bool decides_there = std::ranges::any_of(
          decided, [&](const Decision& one) { return one.rule == "node" && one.flag == link.name; });
      if (need == Need::nothing || (need == Need::impossible && decides_there) || !link.certain)
        continue;
      if (need == Need::impossible)
        out.push_back(warning("SF407", link.name, "it does not hand variables on, so what it starts is not guarded",
                              "let it run `sharefs run -- CMD...`"));
      else if (need == Need::env_file)
        write_env_file(launch, program, link, variables, out);
      else
        for (const auto& [name, value] : variables)
          if (is_named(link, name))
            continue;
          else if (is_plain_value(value))
            out.push_back(carry_one(launch, link, need, name, value));
          else
            out.push_back(warning("SF407", name, "its value has characters that " + link.name + " would change",
                                  "use a path of letters, digits and `_./-`"));
    }
  return out;
}

} // namespace sharefs::cachefix
