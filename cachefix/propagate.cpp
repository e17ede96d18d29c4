// How a variable reaches the program: through launchers that empty the environment, and to other hosts.
#include "cachefix/draft.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "cachefix/hosts.hpp"

#include <algorithm>
#include <cctype>

namespace sharefs::cachefix {
namespace {

// Spellings that only one of the two takes; both have -bind-to, -map-by, -host and -hostfile.
constexpr std::string_view k_open_mpi_options = "-x -mca -gmca -allow-run-as-root -pernode -N -npernode";
constexpr std::string_view k_mpich_options =
    "-genv -genvall -genvnone -genvlist -env -ppn -perhost -hosts -f -iface -rmk -launcher -bootstrap";
constexpr std::string_view k_mpich_cuts = "-genvnone -envnone -genvlist -envlist";

enum class Mpi { open_mpi, mpich, unknown };

/// Is one of the options given, in this very spelling?
bool is_spelled(const Draft& draft, const ChainLink& link, std::string_view names) {
  return std::any_of(link.options.given.begin(), link.options.given.end(), [&](const GivenOption& option) {
    const std::string& word = draft.argv[option.index];
    return is_listed(word.starts_with("--") ? word.substr(1) : word, names);
  });
}

bool has_option(const ChainLink& link, std::string_view names) {
  return std::any_of(link.options.given.begin(), link.options.given.end(),
                     [&](const GivenOption& option) { return is_listed(option.name, names); });
}

bool has_meaning(const ChainLink& link, Means means) {
  return std::any_of(link.options.given.begin(), link.options.given.end(),
                     [means](const GivenOption& option) { return option.means == means; });
}

Mpi flavour_of_name(std::string_view name) {
  for (const std::string_view part : {"openmpi", "orterun", "prterun", "open-mpi"})
    if (name.find(part) != std::string_view::npos)
      return Mpi::open_mpi;
  for (const std::string_view part : {"mpich", "hydra", "intel"})
    if (name.find(part) != std::string_view::npos)
      return Mpi::mpich;
  return Mpi::unknown;
}

/// Which mpirun this is, by its name, its options, or what /usr/bin/mpirun is a link to. nullopt: not known yet.
std::optional<Mpi> flavour_of(Draft& draft, const Program& program, const ChainLink& link) {
  const std::string& word = draft.argv[link.index];
  if (const Mpi by_name = flavour_of_name(word); by_name != Mpi::unknown)
    return by_name;
  if (is_spelled(draft, link, k_open_mpi_options))
    return Mpi::open_mpi;
  if (is_spelled(draft, link, k_mpich_options))
    return Mpi::mpich;
  std::vector<std::string> candidates;
  if (word.find('/') != std::string::npos) {
    if (auto path = draft.absolute(program, word)) // a URL is none
      candidates.push_back(*std::move(path));
  } else {
    for (const std::string& directory :
         split(draft.variable(program, "PATH").value_or("/usr/local/bin:/usr/bin:/bin"), ':'))
      if (directory.starts_with('/'))
        candidates.push_back(join_path(directory, word));
  }
  bool waiting = false;
  for (const std::string& path : candidates) {
    const sys::Entry* place = draft.place(path);
    waiting = waiting || place == nullptr;
    if (!waiting && (place->kind == sys::EntryKind::file || place->kind == sys::EntryKind::other))
      return flavour_of_name(place->resolved);
  }
  return waiting ? std::nullopt : std::optional<Mpi>(Mpi::unknown);
}

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

/// A list as of srun --export.
bool exports_all(const std::string& list) {
  const auto parts = split(list, ',');
  return std::find(parts.begin(), parts.end(), "ALL") != parts.end();
}

bool names_variables(const std::string& list) {
  const auto parts = split(list, ',');
  return std::any_of(parts.begin(), parts.end(),
                     [](const std::string& part) { return part != "NONE" && part != "NIL" && !part.empty(); });
}

/// What one launcher needs so that a variable passes it. nullopt: not known yet.
std::optional<Need> need_of(Draft& draft, const Program& program, const ChainLink& link) {
  const Launcher& launcher = *link.launcher;
  if (launcher.carries == Carries::no)
    return Need::impossible;
  if (launcher.carries == Carries::deepspeed)
    return !names_hosts(draft, link) ? Need::nothing : draft.can_write ? Need::env_file : Need::impossible;
  if (launcher.carries == Carries::mpi) {
    const auto flavour = flavour_of(draft, program, link);
    if (!flavour)
      return std::nullopt;
    if (*flavour == Mpi::open_mpi)
      return Need::x_options;
    if (*flavour == Mpi::mpich)
      return has_option(link, k_mpich_cuts) ? Need::genv_options : Need::nothing;
    return names_hosts(draft, link) ? Need::impossible : Need::nothing;
  }
  if (launcher.assignments)
    return has_meaning(link, Means::clear) || has_meaning(link, Means::unset) ? Need::env_words : Need::nothing;
  if (has_meaning(link, Means::clear))
    return Need::env_options;
  for (auto option = link.options.given.rbegin(); option != link.options.given.rend(); ++option)
    if (option->means == Means::assign_list)
      return exports_all(option->value)       ? Need::nothing
             : names_variables(option->value) ? Need::export_list
                                              : Need::impossible;
  if (!launcher.export_variable.empty())
    if (const auto list = draft.variable(program, launcher.export_variable); list && !exports_all(*list))
      return Need::impossible;
  return Need::nothing;
}

void insert(Draft& draft, std::size_t index, std::vector<std::string> words) {
  auto& before = draft.edits[index].before;
  before.insert(before.end(), std::make_move_iterator(words.begin()), std::make_move_iterator(words.end()));
}

void report(Draft& draft, const ChainLink& link, const std::string& flag, std::optional<std::size_t> index,
            const std::string& name, const std::string& value) {
  draft.out.changes.push_back({ChangeKind::argument, flag, index, std::nullopt, name + "=" + value,
                               CacheClass::node_local, ChangeAction::set, "propagate." + link.name,
                               "so that " + name + " passes " + link.name});
}

void carry(Draft& draft, const ChainLink& link, Need need, const std::string& name, const std::string& value) {
  const std::string pair = name + "=" + value;
  switch (need) {
  case Need::env_words:
    insert(draft, link.tail_begin, {pair});
    return report(draft, link, link.name, std::nullopt, name, value);
  case Need::env_options:
    insert(draft, link.options_begin, {"-e", pair});
    return report(draft, link, "-e", std::nullopt, name, value);
  case Need::x_options:
    for (const std::size_t context : link.contexts) // of each command between `:` for itself
      insert(draft, context, {"-x", pair});
    return report(draft, link, "-x", std::nullopt, name, value);
  case Need::genv_options:
    insert(draft, link.options_begin, {"-genv", name, value});
    return report(draft, link, "-genv", std::nullopt, name, value);
  case Need::export_list:
    for (auto option = link.options.given.rbegin(); option != link.options.given.rend(); ++option)
      if (option->means == Means::assign_list) {
        draft.replace(option->value_index, draft.argv[option->value_index].size(), 0, "," + pair);
        return report(draft, link, option->name, option->value_index, name, value);
      }
    return;
  case Need::env_file:
  case Need::nothing:
  case Need::impossible:
    return;
  }
}

/// The lines of the files that deepspeed would read, in its order, and ours behind them: the last of a name counts.
/// nullopt: not known yet.
std::optional<std::string> merged_env_file(Draft& draft, const Program& program) {
  const std::string name = draft.variable(program, "DS_ENV_FILE").value_or(".deepspeed_env");
  std::vector<std::string> paths;
  if (name.starts_with('/'))
    paths = {name};
  else
    paths = {join_path(draft.home(program), name), join_path(program.directory, name)};
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  std::string merged;
  bool waiting = false;
  for (const std::string& path : paths) {
    const auto* text = draft.text(path);
    waiting = waiting || text == nullptr;
    if (text == nullptr || !*text)
      continue;
    merged += **text;
    if (!merged.empty() && merged.back() != '\n')
      merged += '\n';
  }
  if (waiting)
    return std::nullopt;
  for (const auto& [variable, value] : draft.out.set)
    merged += variable + "=" + value + "\n";
  return merged;
}

void write_env_file(Draft& draft, const Program& program, const ChainLink& link) {
  if (!draft.facts.local) {
    draft.out.questions.local = true;
    return;
  }
  if (draft.facts.local->directory.empty())
    return;
  const auto content = merged_env_file(draft, program);
  if (!content)
    return;
  // Named by its content: a job that is just being started never finds the lines of another in its file.
  const std::string path = draft.facts.local->directory + "/deepspeed_env-" + key_of(*content);
  draft.out.copies.push_back({path, *content});
  draft.out.changes.push_back({ChangeKind::file, path, std::nullopt, std::nullopt, path, CacheClass::node_local,
                               ChangeAction::set, "propagate." + link.name,
                               "deepspeed hands only the variables of this file to the other nodes; the lines of your "
                               ".deepspeed_env files are in it"});
  draft.set_variable(program, "DS_ENV_FILE", path, CacheClass::node_local, "propagate." + link.name,
                     "names the file with the variables for the other nodes");
}

} // namespace

bool is_plain_value(const std::string& value) {
  return std::all_of(value.begin(), value.end(), [](unsigned char c) {
    return c < 128 && (std::isalnum(c) != 0 || c == '_' || c == '.' || c == '/' || c == '-' || c == '+' || c == '@');
  });
}

bool names_hosts(Draft& draft, const ChainLink& link) {
  if (has_meaning(link, Means::hostfile) || has_meaning(link, Means::remote))
    return true;
  if (link.launcher->default_hostfile.empty())
    return false;
  const auto* text = draft.text(std::string(link.launcher->default_hostfile));
  return text != nullptr && *text && !parse_hostfile(**text).empty();
}

bool runs_elsewhere(Draft& draft, const Walk& walk, const Program& program) {
  return draft.elsewhere || std::any_of(program.chain.begin(), program.chain.end(), [&](std::size_t number) {
           const ChainLink& link = walk.chain[number];
           const Carries carries = link.launcher->carries;
           return carries == Carries::no ||
                  ((carries == Carries::deepspeed || carries == Carries::mpi) && names_hosts(draft, link));
         });
}

std::optional<bool> can_carry(Draft& draft, const Walk& walk, const Program& program) {
  bool possible = draft.carries;
  for (const std::size_t number : program.chain) {
    const auto need = need_of(draft, program, walk.chain[number]);
    if (!need)
      return std::nullopt;
    possible = possible && *need != Need::impossible;
  }
  return possible;
}

void propagate(Draft& draft, const Walk& walk) {
  if (draft.out.set.empty())
    return;
  const auto variables = draft.out.set; // DS_ENV_FILE is added below and stays on this host
  std::vector<std::size_t> done;
  for (const Program& program : walk.programs)
    for (const std::size_t number : program.chain) {
      if (std::find(done.begin(), done.end(), number) != done.end())
        continue;
      done.push_back(number);
      const ChainLink& link = walk.chain[number];
      const auto need = need_of(draft, program, link);
      if (!need || *need == Need::nothing)
        continue;
      if (*need == Need::impossible) {
        draft.diagnose(Severity::warning, "SF407", link.name,
                       "it does not hand variables on, so caches that variables name stay on the share there",
                       "set them there, or put `sharefs run --` behind it");
        continue;
      }
      if (*need == Need::env_file)
        write_env_file(draft, program, link);
      else
        for (const auto& [name, value] : variables)
          if (is_plain_value(value))
            carry(draft, link, *need, name, value);
          else
            draft.diagnose(Severity::warning, "SF407", name,
                           "its value has characters that " + link.name + " would change",
                           "use a path of letters, digits and `_./-`");
    }
}

} // namespace sharefs::cachefix
