#include "config/load.hpp"

#include "config/check.hpp"
#include "config/fill.hpp"
#include "config/source.hpp"
#include "config/tree.hpp"

namespace sharefs::config {

Result<Config> parse(std::string_view yaml, const std::string& file) {
  const Source source(yaml, file);
  if (const auto problem = source.unreadable())
    return fail(source.error(*problem));
  const auto root = read_tree(source);
  if (!root)
    return fail(source.error(root.error()));
  FirstProblem problem;
  check_against_keys(*root, problem);
  Config config = fill(*root, source, problem);
  if (problem.get())
    return fail(source.error(*problem.get()));
  return config;
}

} // namespace sharefs::config
