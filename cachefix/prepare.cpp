#include "cachefix/run_plan.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "plan/apply.hpp"

namespace sharefs::cachefix {
namespace {

/// Named by its content, in a directory of this user's alone: what is there already is the same.
Result<void> write_file(sys::System& system, const VariableFile& file) {
  if (auto made = make_own_directory(system, parent_path(file.path)); !made)
    return made;
  const auto there = system.files().read_if_exists(file.path, file.content.size() + 1);
  if (!there)
    return fail(there.error());
  if (*there == file.content)
    return {};
  auto written = system.files().write_if(file.path, *there, file.content, 0600);
  return written ? Result<void>() : fail(written.error());
}

} // namespace

Result<void> prepare(sys::System& system, const RunPlan& decided) {
  if (auto made = make_caches(system, decided.directories); !made)
    return made;
  for (const ModelLink& link : decided.links) {
    const auto made = plan::apply_action(plan::make_link(link.path, link.target), system);
    if (!made && made.error().code != ErrorCode::conflict) // a model that was downloaded here before
      return fail(made.error());
  }
  for (const VariableFile& file : decided.files)
    if (auto written = write_file(system, file); !written)
      return written;
  return {};
}

} // namespace sharefs::cachefix
