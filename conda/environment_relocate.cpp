#include "conda/environment.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/try.hpp"
#include "conda/running.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::conda {

namespace {

Error is_generation(const EnvironmentRequest& request, const GenerationPath& generation) {
  return {ErrorCode::unsupported,
          fmt::format("{} is generation {} of the shared environment `{}`, in which nothing changes any more",
                      request.path, generation.number, generation.name),
          fmt::format("`sharefs conda verify {} --repair` makes a generation whose files name {}", generation.name,
                      join_path(generation.store, generation.name)),
          ""};
}

} // namespace

Result<void> check_relocation(sys::System& system, const EnvironmentRequest& request) {
  const auto& prefix = request.prefix;
  TRY(check_prefix(prefix));
  for (const auto& from : request.from)
    if (is_under(prefix, from) && from != prefix)
      return fail(ErrorCode::unsupported,
                  fmt::format("{} lies below {}: they cannot be told apart in files", prefix, from));
  const auto entries =
      system.entries({.queries = {{.path = request.path, .follow = true}, {.path = prefix, .follow = true}}});
  for (const auto& entry : entries)
    if (entry.kind == sys::EntryKind::unknown)
      return fail(entry.error());
  const auto &here = entries[0], &there = entries[1];
  if (const auto generation = in_generation(here.resolved); generation && generation->rest.empty())
    return fail(is_generation(request, *generation));
  if (here.kind != sys::EntryKind::directory)
    return fail(ErrorCode::not_found, "there is no directory " + request.path,
                "ENV is where the environment lies now, or its name in the store");
  // Two paths lead to the same directory if its device and inode number are the same.
  if (there.exists() && there.device == here.device && there.inode == here.inode)
    return {};
  if (there.exists())
    return fail(ErrorCode::usage, fmt::format("{} is not {}: something else lies there", prefix, request.path));
  return fail(ErrorCode::unsupported,
              fmt::format("the environment does not lie at {} yet, and sharefs does not move it", prefix),
              fmt::format("move it (`mv {0} {1}`), then run `sharefs conda relocate {1} {1}`",
                          shell_quote(request.path), shell_quote(prefix)));
}

Diagnoses diagnose_relocation(const EnvironmentState& state) {
  constexpr std::array<std::string_view, 5> k_in_the_way{"SF503", "SF504", "SF505", "SF508", "SF509"};
  auto found = diagnose(state);
  std::erase_if(found,
                [&](const Diagnosis& one) { return std::ranges::find(k_in_the_way, one.code) == k_in_the_way.end(); });
  return found;
}

} // namespace sharefs::conda
