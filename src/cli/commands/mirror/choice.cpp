#include "cli/commands/mirror/choice.hpp"

#include "base/text.hpp"
#include "base/try.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

Result<std::vector<fleet::Mirror>> chosen_mirrors(Context& context, const std::vector<std::string>& names) {
  TRY_ASSIGN(const auto config, context.config());
  std::vector<std::string> known;
  for (const auto& mirror : config->mirrors)
    known.push_back(mirror.name);
  if (known.empty())
    return fail(ErrorCode::usage, "sharefs.yaml names no mirror",
                "write for example `mirror: {code: {path: /data/code}}` into it");
  std::vector<fleet::Mirror> chosen;
  for (const auto& name : names.empty() ? known : names) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end())
      return fail(ErrorCode::usage, fmt::format("no mirror is called `{}`", name), did_you_mean_hint(name, known));
    const auto& mirror = config->mirrors[static_cast<std::size_t>(found - known.begin())];
    chosen.push_back({.name = mirror.name, .path = mirror.path, .removes = mirror.removes, .exclude = mirror.exclude});
  }
  return chosen;
}

} // namespace sharefs::cli
