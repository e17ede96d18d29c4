#include "mounts/target.hpp"

#include "base/path.hpp"
#include "base/result.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::mounts {

std::vector<std::string> ancestors_and_self(const std::string& target) {
  std::vector<std::string> paths;
  for (std::string path = target; path != "/" && !path.empty(); path = parent_path(path))
    paths.push_back(path);
  std::reverse(paths.begin(), paths.end());
  return paths;
}

std::vector<sys::PathQuery> target_queries(const std::string& target) {
  std::vector<sys::PathQuery> queries;
  for (const auto& path : ancestors_and_self(target))
    queries.push_back({.path = path, .list = path == target});
  return queries;
}

TargetFacts judge_target(const std::vector<sys::PathFact>& facts) {
  TargetFacts target;
  for (const auto& fact : facts) {
    switch (fact.kind) {
    case sys::PathKind::missing:
      target.missing.push_back(fact.path);
      break;
    case sys::PathKind::directory:
      target.entries = fact.entries.size();
      break;
    case sys::PathKind::symlink:
      if (target.link.empty()) {
        target.link = fact.path;
        target.link_leads_to = fact.link_target;
      }
      break;
    case sys::PathKind::unknown:
      target.problem = fmt::format("{}: {}", fact.path, errno_text(fact.error_number));
      return target;
    case sys::PathKind::file:
    case sys::PathKind::other:
      target.problem = fact.path + " is no directory";
      return target;
    }
  }
  return target;
}

} // namespace sharefs::mounts
