#include "conda/running.hpp"

#include "base/json.hpp"
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "conda/homes.hpp"
#include "conda/prefix.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>

namespace sharefs::conda {

namespace {

using sys::EntryKind;
using Variables = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t k_largest_state = 1U << 20U;
constexpr std::size_t k_most_variables = 1000, k_most_values = 10'000; // limits for an environment
constexpr std::size_t k_all_states = 16U << 20U, k_most_files = 1000;  // limits for the files of its packages
constexpr std::size_t k_script_head = 1024;
constexpr std::string_view k_generation_variable = "SHAREFS_CONDA_GENERATION";
constexpr std::string_view k_unset = "***unset***"; // conda's CONDA_ENV_VARS_UNSET_VAR

std::string_view name_of(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

std::optional<std::string> variable(const std::vector<std::string>& environment, std::string_view name) {
  const auto found = std::ranges::find(environment, name, name_of);
  return found == environment.end() || found->size() == name.size() ? std::nullopt
                                                                    : std::optional(found->substr(name.size() + 1));
}

void set_variable(std::vector<std::string>& environment, std::string_view name, std::string_view value) {
  auto text = fmt::format("{}={}", name, value);
  if (const auto found = std::ranges::find(environment, name, name_of); found != environment.end())
    *found = std::move(text);
  else
    environment.push_back(std::move(text));
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && name.find_first_of(std::string_view("=\0", 2)) == std::string_view::npos;
}

Diagnosis unusable(const std::string& path, const std::string& why) {
  return {Severity::warning, "SF504", path, "its variables are not set: " + why, "", ""};
}

void add_variables(RunningPlace& place, const sys::Entry& entry, bool is_state) {
  if (entry.kind == EntryKind::missing)
    return;
  if (entry.kind != EntryKind::file) {
    place.found.push_back(unusable(entry.path, entry.kind == EntryKind::unknown ? reason_of(entry) : "it is no file"));
    return;
  }
  auto read = entry.content.size() < entry.size ? fail(ErrorCode::failed, "it is too large")
                                                : variables_in(entry.content, is_state ? "env_vars" : nullptr);
  if (!read)
    place.found.push_back(unusable(entry.path, read.error().message));
  else if (place.variables.size() + read->size() > k_most_variables)
    place.found.push_back(unusable(entry.path, fmt::format("there are more than {} of all files", k_most_variables)));
  else
    std::ranges::move(*read, std::back_inserter(place.variables));
}

/// Returns the path below `prefix` for a `resolved` path in any generation of the same environment; nullopt for other
/// paths.
std::optional<std::string> moved_to(const std::string& prefix, const GenerationPath& generation,
                                    const std::string& resolved) {
  const auto there = in_generation(resolved);
  if (!there || there->name != generation.name || there->store != generation.store)
    return std::nullopt;
  return there->rest.empty() ? prefix : join_path(prefix, there->rest);
}

/// Returns the paths at which the command may lie: below the directories of PATH up to the environment's own bin.
std::vector<std::string> places_of(const std::string& word, const std::string& prefix,
                                   const std::vector<std::string>& environment, const std::string& directory) {
  if (word.find('/') != std::string::npos)
    return {join_path(directory, word)};
  std::vector<std::string> places;
  const auto bin = join_path(prefix, "bin");
  for (const auto& part : split(variable(environment, "PATH").value_or(""), ':')) {
    places.push_back(join_path(normalize_path(part, directory), word));
    if (normalize_path(part, directory) == bin)
      return places;
  }
  return {};
}

/// Parses a path below .generations; `number_of` parses the name of the generation's directory.
template <class NumberOf> std::optional<GenerationPath> below_generations(std::string_view path, NumberOf number_of) {
  constexpr std::string_view k_mark = "/.generations/";
  const auto mark = path.rfind(k_mark);
  if (mark == std::string_view::npos || mark == 0)
    return std::nullopt;
  const auto below = path.substr(mark + k_mark.size());
  const auto name_end = below.find('/');
  if (name_end == std::string_view::npos || name_end == 0)
    return std::nullopt;
  const auto rest = below.substr(name_end + 1);
  const auto number_end = std::min(rest.find('/'), rest.size());
  const std::optional<unsigned> number = number_of(rest.substr(0, number_end));
  if (!number)
    return std::nullopt;
  return GenerationPath{std::string(path.substr(0, mark)), std::string(below.substr(0, name_end)), *number,
                        std::string(rest.substr(std::min(number_end + 1, rest.size())))};
}

} // namespace

std::optional<GenerationPath> in_generation(std::string_view path) {
  return below_generations(path, generation_number);
}

Result<Variables> variables_in(std::string_view json, const char* below) {
  const auto document = read_json<nlohmann::ordered_json>(
      json, {.bytes = k_largest_state, .values = k_most_values, .members = k_most_variables});
  if (!document)
    return fail(ErrorCode::failed, "it " + document.error().message);
  if (!document->is_object())
    return fail(ErrorCode::failed, "it is no JSON object");
  Variables variables;
  const auto* object = &*document;
  if (below != nullptr) {
    const auto inner = document->find(below);
    if (inner == document->end())
      return variables;
    if (!inner->is_object())
      return fail(ErrorCode::failed, fmt::format("`{}` is no JSON object", below));
    object = &*inner;
  }
  for (const auto& [name, value] : object->items()) {
    if (!is_variable_name(name) || !value.is_string() ||
        value.get_ref<const std::string&>().find('\0') != std::string::npos)
      return fail(ErrorCode::failed, fmt::format("`{}` is no variable with a text", to_utf8(name)));
    if (value != k_unset)
      variables.emplace_back(name, value.get<std::string>());
  }
  return variables;
}

namespace {

/// Reads the environment in one request, which needs one child if the path may hang; the note is left first. `fresh`,
/// because an NFS client may cache the target of STORE/ENV for a minute while another host updates the environment; the
/// path of a generation always leads to the same place.
std::vector<sys::Entry> read_place(sys::System& system, const std::string& path, const std::optional<sys::Note>& note,
                                   std::chrono::milliseconds deadline) {
  const auto inside = [&](const char* name, bool list, std::size_t bytes) {
    return sys::EntryQuery{
        .path = path + "/" + name, .follow = bytes != 0, .list = list, .read_bytes = bytes, .automount = true};
  };
  return system.entries(
      {.queries = {{.path = path, .follow = true, .note = note, .fresh = !in_generation(path), .automount = true},
                   inside("conda-meta", false, 0),
                   inside("conda-meta/state", false, k_largest_state),
                   inside("etc/conda/env_vars.d", true, 0),
                   inside("etc/conda/activate.d", true, 0)},
       .deadline = deadline});
}

} // namespace

Result<RunningPlace> probe_running(sys::System& system, const std::string& path, const std::optional<sys::Note>& note,
                                   std::chrono::milliseconds deadline) {
  auto entries = read_place(system, path, note, deadline);
  auto prefix = entries[0].resolved;
  // STORE/ENV may be switched to another generation during the request. Then the one that it led to first is read
  // again; if that was deleted before the note was left, the other one.
  const auto is_elsewhere = [&](const sys::Entry& entry) {
    return entry.kind != EntryKind::unknown && !is_under(entry.resolved, prefix);
  };
  if (entries[0].exists() && std::any_of(entries.begin() + 1, entries.end(), is_elsewhere)) {
    entries = read_place(system, prefix, note, deadline);
    if (entries[0].kind == EntryKind::missing)
      entries = read_place(system, path, note, deadline);
    prefix = entries[0].resolved;
  }
  const auto &whole = entries[0], &meta = entries[1];
  for (const auto* entry : {&whole, &meta})
    if (entry->kind == EntryKind::unknown)
      return fail(entry->error());
  if (whole.kind != EntryKind::directory || meta.kind != EntryKind::directory)
    return fail(ErrorCode::not_found,
                whole.kind == EntryKind::missing ? fmt::format("there is no environment {}", path)
                                                 : path + " is no conda environment: it has no directory `conda-meta`",
                "`sharefs conda list` knows where environments lie");
  RunningPlace place;
  place.prefix = prefix;
  place.generation = in_generation(prefix);
  if (place.generation && !place.generation->rest.empty())
    place.generation.reset();
  sys::EntryRequest of_packages;
  for (const auto& name : entries[3].names)
    if (name.ends_with(".json"))
      of_packages.queries.push_back({.path = join_path(entries[3].resolved, name), .follow = true});
  if (of_packages.queries.size() > k_most_files) {
    place.found.push_back(unusable(entries[3].resolved, fmt::format("it holds more than {} files", k_most_files)));
    of_packages.queries.clear();
  }
  for (auto& query : of_packages.queries)
    query.read_bytes = std::min(k_largest_state, k_all_states / of_packages.queries.size());
  for (const auto& entry : system.entries(of_packages))
    add_variables(place, entry, false);
  add_variables(place, entries[2], true);
  for (const auto& name : entries[4].names)
    if (name.ends_with(".sh"))
      place.scripts.push_back(join_path(entries[4].resolved, name));
  place.noted = whole.made.has_value();
  place.shared = whole.shared;
  return place;
}

std::vector<std::string> activate(std::vector<std::string> environment, const RunningPlace& place,
                                  const std::string& name) {
  const int level = parse_number<int>(variable(environment, "CONDA_SHLVL").value_or("")).value_or(0);
  const auto before = variable(environment, "CONDA_PREFIX").value_or("");
  if (level > 0 && !before.empty())
    set_variable(environment, fmt::format("CONDA_PREFIX_{}", level), before);
  const auto bin = join_path(place.prefix, "bin");
  std::string path = bin;
  for (const auto& part : split(variable(environment, "PATH").value_or("/usr/local/bin:/usr/bin:/bin"), ':'))
    if (part != bin && (before.empty() || part != join_path(before, "bin")))
      path += ":" + part;
  set_variable(environment, "PATH", path);
  set_variable(environment, "CONDA_PREFIX", place.prefix);
  set_variable(environment, "CONDA_SHLVL", std::to_string(std::max(level, 0) + 1));
  set_variable(environment, "CONDA_DEFAULT_ENV", name);
  set_variable(environment, "CONDA_PROMPT_MODIFIER", "(" + name + ") ");
  for (const auto& [key, value] : place.variables)
    set_variable(environment, key, value);
  return environment;
}

std::vector<std::string> environment_for_changes(std::vector<std::string> environment, const std::string& prefix,
                                                 const std::string& name) {
  constexpr std::array<std::string_view, 7> k_elsewhere{"CONDA_SHLVL", "PYTHONHOME", "PYTHONPATH", "PIP_TARGET",
                                                        "PIP_PREFIX",  "PIP_USER",   "PIP_ROOT"};
  std::erase_if(environment, [&](std::string_view entry) {
    return std::ranges::find(k_elsewhere, name_of(entry)) != k_elsewhere.end();
  });
  RunningPlace place;
  place.prefix = prefix;
  place.variables = {{"PYTHONNOUSERSITE", "1"}};
  return activate(std::move(environment), place, name);
}

std::vector<std::string> apply_script_output(std::vector<std::string> environment, std::string_view printed) {
  constexpr std::array<std::string_view, 4> k_of_the_shell{"_", "SHLVL", "PWD", "OLDPWD"};
  const auto is_shells = [&](std::string_view entry) {
    return std::ranges::find(k_of_the_shell, name_of(entry)) != k_of_the_shell.end();
  };
  std::vector<std::string> after;
  for (auto& entry : split(printed, '\0'))
    if (entry.find('=') != std::string::npos && !is_shells(entry))
      after.push_back(std::move(entry));
  for (auto& entry : environment)
    if (is_shells(entry))
      after.push_back(std::move(entry));
  return after;
}

void set_generation(std::vector<std::string>& environment, const GenerationPath& generation) {
  set_variable(environment, k_generation_variable,
               generation_path(generation.store, generation.name, generation.number));
}

Argv pin_command(sys::System& system, Argv command, const std::vector<std::string>& environment,
                 const std::string& working_directory) {
  const auto generation = in_generation(variable(environment, k_generation_variable).value_or(""));
  const auto prefix = variable(environment, "CONDA_PREFIX").value_or("");
  if (!generation || !generation->rest.empty() || !prefix.starts_with('/'))
    return command;
  sys::EntryRequest request;
  for (auto& place : places_of(command.front(), prefix, environment, working_directory)) {
    request.queries.push_back({.path = place});
    request.queries.push_back({.path = std::move(place), .follow = true, .read_bytes = k_script_head});
  }
  const auto entries = system.entries(request);
  for (std::size_t index = 0; index + 1 < entries.size(); index += 2) {
    const auto& program = entries[index + 1];
    if (program.kind != EntryKind::file || (program.mode & 0111U) == 0)
      continue;
    auto path = moved_to(prefix, *generation, entries[index].resolved);
    if (!path && is_under(entries[index].resolved, prefix))
      path = entries[index].resolved; // the prefix is a staged copy
    if (!path)
      return command;
    if (entries[index].path != *path)
      command.front() = *path;
    auto words = interpreter_of(program.content);
    if (words.empty() || !words.front().starts_with('/'))
      return command;
    const auto above = system.entry({.path = parent_path(words.front()), .follow = true});
    const auto ours = moved_to(prefix, *generation, above.resolved);
    if (!ours)
      return command;
    words.front() = join_path(*ours, base_name(words.front()));
    words.push_back(*path);
    words.insert(words.end(), command.begin() + 1, command.end());
    return words;
  }
  return command;
}

std::vector<RunningProgram> running_programs(sys::System& system) {
  const auto number_of = [](std::string_view name) { // also a generation that `gc` has just renamed to delete it
    const auto number = generation_number(name);
    return number ? number : unfinished_generation(name);
  };
  std::vector<RunningProgram> found;
  for (const auto& process : sys::read_processes(system, sys::process_ids(system), {{.path = "exe"}}))
    if (auto in = below_generations(process.entries[0].link_target, number_of))
      found.push_back({process.pid, std::move(*in)});
  return found;
}

std::vector<RunningProgram> programs_of(sys::System& system, std::vector<RunningProgram> programs,
                                        const std::string& name, const sys::Entry& root) {
  if (!root.exists())
    return {};
  std::set<std::string> elsewhere;
  for (const auto& [pid, in] : programs)
    if (in.name == name)
      elsewhere.insert(generations_path(in.store, name));
  elsewhere.erase(root.resolved);
  sys::EntryRequest request;
  for (const auto& path : elsewhere)
    request.queries.push_back({.path = path, .follow = true});
  const auto entries = elsewhere.empty() ? std::vector<sys::Entry>() : system.entries(request);
  for (const auto& entry : entries) // a path that does not exist here may be one of a container
    if (entry.kind == EntryKind::directory && entry.inode != root.inode)
      elsewhere.erase(entry.path);
  std::erase_if(programs, [&](const RunningProgram& program) {
    const auto path = generations_path(program.in.store, name);
    return program.in.name != name || (path != root.resolved && !elsewhere.contains(path));
  });
  return programs;
}

} // namespace sharefs::conda
