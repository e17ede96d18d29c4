#include "config/load.hpp"

#include "base/argv.hpp"
#include "base/text.hpp"
#include "config/read.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::config {

Checked check(std::string_view yaml, const std::string& file) {
  const Source source(yaml, file);
  if (const auto problem = source.find_unreadable())
    return {{}, {source.error(*problem)}};
  const auto root = read_tree(source);
  if (!root)
    return {{}, {source.error(root.error())}};
  Problems problems;
  Checked checked{read_config(*root, source, problems), {}};
  std::ranges::stable_sort(problems.found, {}, &Problem::place);
  for (const auto& problem : problems.found)
    checked.errors.push_back(source.error(problem));
  if (problems.further > 0)
    checked.errors.push_back(
        {ErrorCode::config, fmt::format("{}: {}", file, count_of(problems.further, "further error")), {}, {}});
  return checked;
}

Result<Config> parse(std::string_view yaml, const std::string& file) {
  auto [config, errors] = check(yaml, file);
  if (errors.empty())
    return std::move(config);
  if (errors.size() > 1)
    errors.front().context +=
        fmt::format("{}  {} more: `sharefs config check {}` shows all", errors.front().context.empty() ? "" : "\n",
                    errors.size() - 1, shell_quote(file));
  return fail(errors.front());
}

} // namespace sharefs::config
