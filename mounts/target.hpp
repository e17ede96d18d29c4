#pragma once
// The directory that a mount goes on.
#include "sys/fs/path_probe.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace sharefs::mounts {

struct TargetFacts {
  std::vector<std::string> missing; ///< directories to be made, the topmost first, the target itself last
  std::size_t entries = 0;          ///< names in an existing target
  std::string link, link_leads_to;  ///< the first symbolic link on the way, and its text
  std::string problem;              ///< why it cannot serve or could not be looked at; empty: nothing wrong
  std::string dead_mount;           ///< the hung or stale mount that it lies on; then nothing was looked at
  friend bool operator==(const TargetFacts&, const TargetFacts&) = default;
};

/// "/", "/data", "/data/share" for "/data/share": what has to be looked at, without the root.
std::vector<std::string> ancestors_and_self(const std::string& target);
/// The questions for a target: lstat of each ancestor, and the names in the target.
std::vector<sys::PathQuery> target_queries(const std::string& target);
/// The answers, in the order of target_queries(), as facts.
TargetFacts judge_target(const std::vector<sys::PathFact>& facts);

} // namespace sharefs::mounts
