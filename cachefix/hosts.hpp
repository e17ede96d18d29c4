#pragma once
// The hosts that a launcher will start the program on, as far as its command line and hostfile tell.
#include "cachefix/launch.hpp"

namespace sharefs::cachefix {

/// `host slots=8` (DeepSpeed, Open MPI), `host:8` (MPICH, Intel); `#` begins a comment. Names in order, each once.
std::vector<std::string> parse_hostfile(std::string_view text);
/// `a,b:4` of `-H` and `--hosts`.
std::vector<std::string> parse_host_list(std::string_view text);
/// DeepSpeed's filters over the hosts of its file: `--include a@b:0,2` leaves these, `--exclude a@b:0` takes out those
/// that are named without slots (deepspeed/launcher/runner.py, parse_resource_filter).
std::vector<std::string> filter_hosts(std::vector<std::string> hosts, std::string_view include,
                                      std::string_view exclude);

/// Hosts of all launchers of a command line.
std::vector<std::string> hosts_of(const Launch& launch);
/// Does the launcher start the program on other hosts, as its hostfile or list of hosts says?
bool names_hosts(const Launch& launch, const ChainLink& link);

} // namespace sharefs::cachefix
