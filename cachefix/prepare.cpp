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
  return {};
}

} // namespace sharefs::cachefix
