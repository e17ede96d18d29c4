#include "cli/commands/up/part.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/conda/link.hpp"
#include "cli/commands/mount/support.hpp"
#include "cli/commands/up/on_mounts.hpp"
#include "cli/execute.hpp"
#include "mounts/boot_text.hpp"
#include "mounts/profiles.hpp"
#include "mounts/watch/daemon.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>

namespace sharefs::cli {

namespace {

constexpr const char* k_wanted_units = "/etc/systemd/system/multi-user.target.wants";
constexpr const char* k_group = "at boot"; // the group that the mounts room uses for units, so that they run in order
/// No mount can have a unit of this name, because theirs are sharefs-TARGET.service.
constexpr const char* k_first_boot_unit = "sharefs.service";

/// The unit tries until `up` succeeds, and does not delay the boot (DefaultDependencies). It does not try again after a
/// configuration error, which repeating cannot cure. It comes after the waiting services of the mounts, because
/// otherwise both would mount the same shares.
std::string first_boot_text(const config::Config& config, const std::string& program) {
  std::string after = "basic.target network-online.target";
  for (const auto& mount : config.mounts)
    if (mount.boot == "auto" || mount.boot == "unit" || mount.boot == "fstab")
      after += " " + mounts::unit_names(normalize_path(mount.at)).service;
  return fmt::format("{}`sharefs down` removes this file\n"
                     "[Unit]\nDescription=what sharefs.yaml says about this machine\n"
                     "ConditionPathExists={}\nDefaultDependencies=no\n"
                     "Wants=network-online.target\nAfter={}\n"
                     "Conflicts=shutdown.target\nBefore=shutdown.target\nStartLimitIntervalSec=0\n\n"
                     "[Service]\nType=oneshot\nRemainAfterExit=yes\nTimeoutStartSec=infinity\n"
                     "ExecStart={} up --yes\nRestart=on-failure\nRestartSec=30\nRestartPreventExitStatus=2\n\n"
                     "[Install]\nWantedBy=multi-user.target\n",
                     mounts::k_unit_mark, k_default_config, after, program);
}

/// Returns the first of the paths that is a file in the image; "" if none is.
template <std::size_t N> std::string first_file(sys::System& system, const std::array<const char*, N>& paths) {
  for (const auto* path : paths)
    if (system.entry({.path = path, .follow = true}).kind == sys::EntryKind::file)
      return path;
  return "";
}

/// Returns the mounts of a node that boots the image. Their options follow what the servers answer now, if they do.
Result<std::vector<mounts::MountPoint>> decide_points(Context& context, const config::Config& config,
                                                      std::chrono::milliseconds timeout, bool wanted) {
  std::map<std::string, sys::NfsProbe> servers;
  std::vector<mounts::MountPoint> points;
  for (auto point : mount_points(context.system, &config)) {
    point.here = false; // the machine that makes the image is not the one that boots it
    if (!wanted) {
      point.boot = mounts::BootWay::none;
    } else {
      if (!servers.contains(point.server))
        servers[point.server] = context.system.probe_nfs({point.server, {}, timeout, false});
      const auto* probe = &servers[point.server]; // taken before the point is moved
      TRY_ASSIGN(point, mounts::decide(std::move(point), probe));
    }
    points.push_back(std::move(point));
  }
  return points;
}

/// Describes what is left for the running machine.
std::string left_for_boot(const config::Config& config, const std::vector<mounts::MountPoint>& points, bool by_unit) {
  std::vector<std::string> left;
  if (!points.empty())
    left.push_back(count_of(points.size(), "mount"));
  if (has_shares(config, points))
    left.emplace_back("directories of `shares:`");
  if (config.conda && has_links(*config.conda))
    left.emplace_back("links in the homes");
  if (left.empty())
    return "nothing is left for the first boot";
  return fmt::format("left for the first boot: {}; {}", join(left, ", "),
                     by_unit ? fmt::format("{} does it", k_first_boot_unit)
                             : "without systemd in the image, run `sharefs up` on the machine");
}

/// Warns of parts that the image lacks and the node needs.
void warn_of_missing(Context& context, const config::Config& config, const std::string& program) {
  if (program.empty())
    context.console.warning("there is no sharefs in the image", "install its package there, or copy the program to "
                                                                "/usr/local/bin");
  if (context.config_path() != k_default_config)
    context.console.warning(
        fmt::format("the machine will read {}, and this was {}", k_default_config, context.config_path()),
        "put it there in the image");
  constexpr std::array k_helpers{"/sbin/mount.nfs", "/usr/sbin/mount.nfs"};
  if (!config.mounts.empty() && first_file(context.system, k_helpers).empty())
    context.console.warning("there is no mount.nfs in the image", "install nfs-common (Debian, Ubuntu) or nfs-utils "
                                                                  "(RHEL) there");
}

/// Plans the link that starts the daemon at boot. The unit itself belongs to the package.
void add_daemon(Context& context, const config::Config& config, bool wanted, plan::Plan& plan) {
  if (!config.watch)
    return;
  auto& system = context.system;
  const auto file = mounts::watch::find_unit_file(system);
  const auto link = join_path(k_wanted_units, mounts::watch::k_watch_unit);
  const auto there = system.entry({.path = link});
  if (wanted && file.empty()) {
    context.console.warning(fmt::format("there is no {} in the image", mounts::watch::k_watch_unit),
                            "it comes with the package of sharefs");
  } else if (wanted && !there.exists()) {
    if (!system.entry({.path = k_wanted_units}).exists())
      plan.add(k_group, "units that are started at boot", plan::make_directory(k_wanted_units));
    plan.add(k_group, "started at boot", plan::make_link(link, file));
  } else if (!wanted && there.kind == sys::EntryKind::symlink) {
    plan.add(k_group, "no longer started at boot", plan::remove_link(link, there.link_target));
  }
}

/// Returns the steps that an image can take: none that runs a program, because nothing in an image runs, and each step
/// once, although several parts may need it.
std::vector<plan::Step> steps_for_image(const std::vector<plan::Step>& steps) {
  std::vector<plan::Step> taken;
  for (const auto& step : steps)
    if (!std::holds_alternative<plan::RunTool>(step.action) &&
        std::ranges::find(taken, step.action, &plan::Step::action) == taken.end())
      taken.push_back(step);
  return taken;
}

} // namespace

plan::Plan plan_first_boot(const mounts::BootFacts& facts, const config::Config& config, const std::string& program,
                           bool wanted) {
  return mounts::plan_units(facts, true,
                            {{.name = k_first_boot_unit,
                              .text = wanted ? first_boot_text(config, program) : "",
                              .why = "what needs a running machine is done at its boot",
                              .why_not = "it does not run at boot any more"}});
}

Result<int> change_image(Context& context, const config::Config& config, std::chrono::milliseconds timeout,
                         bool wanted) {
  auto& system = context.system;
  constexpr std::array k_systemd{"/usr/lib/systemd/systemd", "/lib/systemd/systemd"};
  constexpr std::array k_programs{"/usr/bin/sharefs", "/usr/local/bin/sharefs"};
  const bool has_systemd = !first_file(system, k_systemd).empty();
  const auto program = first_file(system, k_programs);
  TRY_ASSIGN(const auto points, decide_points(context, config, timeout, wanted));
  if (wanted)
    warn_of_missing(context, config, program);
  const auto facts = mounts::read_boot_facts(system);
  const mounts::BootHost host{has_systemd, program.empty() ? k_programs.front() : program, "",
                              mounts::find_unsafe_targets(system, facts, points, {})};
  auto boot = mounts::plan_boot(facts, host, points);
  context.report(boot.diagnoses);
  auto plan = std::move(boot.plan);
  if (has_systemd || !wanted)
    plan.add(plan_first_boot(facts, config, host.program, wanted));
  add_daemon(context, config, wanted, plan);
  plan.steps = steps_for_image(plan.steps);
  if (wanted)
    plan.add(plan_cache_directories(system, config));
  TRY_ASSIGN(const auto executed, execute(context, plan,
                                          wanted ? "the image is as sharefs.yaml says: nothing to do"
                                                 : "nothing of sharefs.yaml is in the image: nothing to do"));
  if (wanted && !executed.stopped())
    context.console.message(left_for_boot(config, points, has_systemd));
  return executed.exit_code;
}

} // namespace sharefs::cli
