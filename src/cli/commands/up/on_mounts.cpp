#include "cli/commands/up/on_mounts.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/link.hpp"
#include "cli/commands/conda/support.hpp"
#include "cli/commands/export/support.hpp"
#include "cli/execute.hpp"
#include "exports/system_directory.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

const config::Mount* find_mount(const config::Config& config, const mounts::MountPoint& point) {
  const auto found = std::ranges::find(config.mounts, point.name, &config::Mount::name);
  return found == config.mounts.end() ? nullptr : &*found;
}

/// Returns the mounts on which directories can be made now: those with a `good` target, and this host's own
/// directories. An automount that nobody has used yet is left out, with a message.
std::vector<mounts::MountPoint> ready_points(Context& context, const config::Config& config,
                                             const mounts::Observation& seen, const std::set<std::string>& good) {
  std::vector<mounts::MountPoint> points;
  for (const auto& state : seen.states) {
    if (!good.contains(state.point.target))
      continue;
    if (state.health != mounts::Health::autofs_idle)
      points.push_back(state.point);
    else if (has_shares(config, {state.point}))
      context.console.message(fmt::format("{}: an automount that nobody has used yet: its directories of `shares:` "
                                          "are left until it is mounted",
                                          mounts::name_of(state.point)));
  }
  return points;
}

/// Counts the points about which `found` has an error.
std::size_t count_with_errors(const std::vector<mounts::MountPoint>& ready, const Diagnoses& found) {
  return static_cast<std::size_t>(std::ranges::count_if(ready, [&](const mounts::MountPoint& point) {
    return std::ranges::any_of(found, [&](const Diagnosis& one) {
      return one.severity == Severity::error && one.subject == mounts::name_of(point);
    });
  }));
}

/// Returns the reason why no link of sharefs.yaml can be made yet; "" if they can. The mount itself is reported
/// elsewhere.
std::string no_links_yet(const conda::StoreState& store, const HostPart& part) {
  if (!store.unmounted || !store.share)
    return "";
  const auto& share = store.share->name;
  return std::ranges::find(part.elsewhere, share) == part.elsewhere.end()
             ? fmt::format("the links in the homes are left until {} is mounted: the store lies on it", share)
             : fmt::format("no links in homes: the store lies on {}, which is not for this host", share);
}

Result<void> add_links(Context& context, const config::Config& config, const HostPart& part, OnMounts& on) {
  if (!config.conda || !has_links(*config.conda))
    return {};
  auto probed = probe_links(context.system, config);
  if (!probed && probed.error().code == ErrorCode::permission && context.system.identity().uid != 0)
    return {}; // a user without a home in the plan, who only reads it
  TRY_ASSIGN(auto links, std::move(probed));
  auto& [request, state] = links;
  if (const auto why = no_links_yet(*state.store, part); !why.empty()) {
    context.message_once(why);
    return {};
  }
  if (const auto absent = conda::take_absent_homes(state); !absent.empty())
    context.message_once("no links here for " + join(absent, ", "));
  if (state.homes.empty())
    return {};
  report_reader(context, request.store, state.store->by);
  auto found = conda::diagnose(state, request);
  conda::lower_not_shared_yet(found);
  const bool usable = conda::is_usable(*state.store);
  if (!usable && has_errors(found))
    ++on.failed;
  for (const auto& home : state.homes)
    if (usable && conda::summarize(home, request) == conda::HomeSummary::blocked)
      ++on.failed;
  mounts::append(on.found, found);
  on.plan.add(conda::plan(state, request));
  on.links = std::move(links);
  return {};
}

/// Plans to remove the directories that were made.
plan::Plan without_shares(const OnMounts& done) {
  plan::Plan back;
  for (auto index = done.made; index-- > 0;) {
    const auto& step = done.plan.steps[index];
    const auto* made = std::get_if<plan::Directory>(&step.action);
    if (const auto inverse = made == nullptr ? std::nullopt : plan::invert(*made))
      back.add(step.group, "undo: " + step.why, *inverse);
  }
  return back;
}

} // namespace

OnMounts plan_shares(sys::System& system, const config::Config& config, std::vector<mounts::MountPoint> ready,
                     std::chrono::milliseconds deadline) {
  OnMounts on;
  for (const auto& point : ready) {
    const auto refuse = [&](const std::string& message, const std::string& hint) {
      on.found.push_back(mounts::about(point, Severity::error, "SF243", message, hint));
    };
    const auto* mount = find_mount(config, point);
    for (const auto& share : mount == nullptr ? std::vector<config::Share>() : mount->shares) {
      const auto path = join_path(point.target, share.path);
      auto access = directory_access(system, share.access, share.origin);
      const auto reason = exports::system_directory_reason(path);
      if (!access)
        refuse(access.error().message, access.error().hint);
      else if (point.here && !reason.empty())
        refuse(fmt::format("{} is left as it is, since {}", path, reason), "name another directory in `shares:`");
      else
        on.shares.push_back({point, path, std::move(*access)});
    }
  }
  const auto seen = mounts::probe_shares(system, on.shares, deadline);
  auto planned = mounts::plan_shares(on.shares, seen, system.identity());
  mounts::append(on.found, planned.diagnoses);
  on.plan = std::move(planned.plan);
  on.made = on.plan.steps.size();
  on.failed = count_with_errors(ready, on.found);
  on.ready = std::move(ready);
  return on;
}

bool has_shares(const config::Config& config, const std::vector<mounts::MountPoint>& points) {
  return std::ranges::any_of(points, [&](const mounts::MountPoint& point) {
    const auto* mount = find_mount(config, point);
    return mount != nullptr && !mount->shares.empty();
  });
}

Result<AllLinks> probe_links(sys::System& system, const config::Config& config) {
  Arguments all;
  all.flags = {"all"};
  AllLinks links;
  TRY_ASSIGN(links.request, conda_link_request(config, all, system.identity(), conda::LinkRequest::Verb::link));
  links.request.shares = shares_of(system, config, links.request.store);
  TRY_ASSIGN(links.state, conda::probe(system, links.request));
  return links;
}

Result<OnMounts> plan_on_mounts(Context& context, const config::Config& config, const HostPart* part,
                                const MountWork& mounts, const std::set<std::string>& good,
                                std::chrono::milliseconds deadline) {
  auto on = plan_shares(context.system, config, ready_points(context, config, mounts.seen, good), deadline);
  if (part != nullptr)
    TRY(add_links(context, config, *part, on));
  return on;
}

Result<Executed> execute_on_mounts(Context& context, OnMounts& on, const std::function<Result<void>()>& replan) {
  return execute_further(context, [&]() -> Result<Proposal> {
    TRY(replan());
    return Proposal{on.plan, on.failed > 0 ? "no more can be set on the mounts now" : ""};
  });
}

Result<void> check_shares_made(Context& context, OnMounts& done, std::chrono::milliseconds deadline) {
  const auto seen = mounts::probe_shares(context.system, done.shares, deadline);
  const auto made = mounts::diagnose_made(done.plan, done.shares, seen, context.system.identity());
  context.report(made);
  if (made.empty())
    return {};
  done.failed += count_with_errors(done.ready, made);
  context.console.message("not as it should be: taking the directories back");
  auto flags = context.flags;
  flags.yes = true;
  Context back(context.host, context.system, context.console, flags, context.argv);
  TRY_ASSIGN(const auto undone, execute(back, without_shares(done), ""));
  context.envelope.fields["rolled_back"] = undone.exit_code == k_exit_ok;
  return {};
}

} // namespace sharefs::cli
