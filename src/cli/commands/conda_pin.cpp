#include "cli/commands/conda_pin.hpp"

#include <algorithm>

namespace sharefs::cli {

namespace {

constexpr std::string_view k_generation_variable = "SHAREFS_CONDA_GENERATION=";

std::optional<std::string> value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const auto& entry : environment)
    if (entry.starts_with(name))
      return entry.substr(name.size());
  return std::nullopt;
}

} // namespace

void set_pin(std::vector<std::string>& environment, const conda::GenerationPath& generation) {
  std::erase_if(environment, [](const std::string& entry) { return entry.starts_with(k_generation_variable); });
  environment.push_back(std::string(k_generation_variable) +
                        conda::generation_path(generation.store, generation.name, generation.number));
}

Argv pinned_command(Context& context, Argv command, const std::vector<std::string>& environment) {
  const auto named = value_of(environment, k_generation_variable);
  const auto prefix = value_of(environment, "CONDA_PREFIX=");
  const auto generation = named ? conda::in_generation(*named) : std::nullopt;
  if (!generation || !generation->rest.empty() || !prefix || !prefix->starts_with('/'))
    return command;
  return conda::pinned(context.system, std::move(command), *prefix, *generation, environment,
                       context.host.working_directory);
}

} // namespace sharefs::cli
