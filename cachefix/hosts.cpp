#include "cachefix/launch.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace sharefs::cachefix {
namespace {

/// `host:8`, or `host:0,2` with the numbers of its slots.
void add_host(std::vector<std::string>& hosts, std::string_view name) {
  name = trim(name.substr(0, name.find(':')));
  if (!name.empty())
    add_once(hosts, std::string(name));
}

/// A filter's hosts: `a@b:0,2` -> a, b. With `whole_only` those without slots.
std::vector<std::string> filtered(std::string_view filter, bool whole_only) {
  std::vector<std::string> hosts;
  for (const std::string& part : split(filter, '@'))
    if (!whole_only || part.find(':') == std::string::npos)
      add_host(hosts, part);
  return hosts;
}

/// The hosts of a file; none where it cannot be read.
std::vector<std::string> hosts_in_file(Stakes& stakes, const std::string& path) {
  const auto& text = stakes.text(path);
  return text ? parse_hostfile(*text) : std::vector<std::string>{};
}

/// The hosts that one launcher starts the program on.
std::vector<std::string> hosts_of_link(const Launch& launch, const Program& program, const ChainLink& link) {
  std::vector<std::string> found;
  std::string include, exclude;
  bool has_file = false;
  for (const GivenOption& option : link.options.given) {
    if (option.means == Means::hostfile) {
      has_file = true;
      if (const auto path = launch.absolute(program, option.value))
        found = hosts_in_file(launch.stakes, *path);
    } else if (option.means == Means::remote) {
      found = parse_host_list(option.value);
    } else if (option.name == "--include") {
      include = option.value;
    } else if (option.name == "--exclude") {
      exclude = option.value;
    }
  }
  if (!has_file && !link.launcher->default_hostfile.empty())
    found = hosts_in_file(launch.stakes, std::string(link.launcher->default_hostfile));
  return filter_hosts(std::move(found), include, exclude);
}

} // namespace

std::vector<std::string> parse_hostfile(std::string_view text) {
  std::vector<std::string> hosts;
  for (const std::string& line : split_lines(text))
    if (const auto words = split_words(std::string_view(line).substr(0, line.find('#'))); !words.empty())
      add_host(hosts, words.front());
  return hosts;
}

std::vector<std::string> parse_host_list(std::string_view text) {
  std::vector<std::string> hosts;
  for (const std::string& part : split(text, ','))
    add_host(hosts, part);
  return hosts;
}

std::vector<std::string> filter_hosts(std::vector<std::string> hosts, std::string_view include,
                                      std::string_view exclude) {
  const auto wanted = filtered(include, false), unwanted = filtered(exclude, true);
  std::erase_if(hosts, [&](const std::string& host) {
    return (!include.empty() && std::ranges::count(wanted, host) == 0) || std::ranges::count(unwanted, host) != 0;
  });
  return hosts;
}

std::vector<std::string> hosts_of(const Launch& launch) {
  std::vector<std::string> hosts;
  for (const Program& program : launch.walk.programs)
    for (const ChainLink& link : launch.walk.links(program))
      for (const std::string& host : hosts_of_link(launch, program, link))
        add_host(hosts, host);
  return hosts;
}

bool names_hosts(const Launch& launch, const ChainLink& link) {
  if (link.options.last(Means::hostfile) != nullptr || link.options.last(Means::remote) != nullptr)
    return true;
  return !link.launcher->default_hostfile.empty() &&
         !hosts_in_file(launch.stakes, std::string(link.launcher->default_hostfile)).empty();
}

bool on_unknown_nodes(const Launch& launch, const ChainLink& link) {
  const Program nobody;
  const auto variable = [&](std::string_view name) { return launch.variable(nobody, name).value_or(""); };
  if (link.launcher->tail == Tail::batch || link.launcher->carries == Carries::no)
    return true;
  if (link.launcher->name == "srun") // on the only node of a job it starts processes here
    return variable("SLURM_JOB_NUM_NODES") != "1" || variable("SLURMD_NODENAME").empty();
  if (link.launcher->carries != Carries::mpi || names_hosts(launch, link))
    return false;
  return (!variable("SLURM_JOB_ID").empty() && variable("SLURM_JOB_NUM_NODES") != "1") ||
         !variable("PBS_NODEFILE").empty() || !variable("LSB_HOSTS").empty() || !variable("PE_HOSTFILE").empty();
}

bool runs_elsewhere(const Launch& launch, const Program& program) {
  return launch.setting.elsewhere || std::ranges::any_of(launch.walk.links(program), [&](const ChainLink& link) {
           const Carries carries = link.launcher->carries;
           return carries == Carries::no ||
                  ((carries == Carries::deepspeed || carries == Carries::mpi) && names_hosts(launch, link));
         });
}

} // namespace sharefs::cachefix
