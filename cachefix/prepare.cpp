#include "cachefix/run_plan.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "plan/apply.hpp"

namespace sharefs::cachefix {
Result<void> prepare(sys::System& system, const RunPlan& decided) {
  if (auto made = make_caches(system, decided.directories); !made)
    return made;
  for (const ModelLink& link : decided.links) {
    const auto made = plan::apply_action(plan::make_link(link.path, link.target), system);
    if (!made && made.error().code != ErrorCode::conflict) // a model that was downloaded here before
      return fail(made.error());
  }
  for (const VariableFile& file : decided.files) { // named by its content: what is there already is the same
    auto made = make_own_directory(system, parent_path(file.path));
    if (made && system.entry({.path = file.path}).kind == sys::EntryKind::missing)
      if (auto written = system.files().write_if(file.path, std::nullopt, file.content, 0600); !written)
        made = fail(written.error());
    if (!made)
      return made;
  }
  return {};
}

} // namespace sharefs::cachefix
