#include "cli/commands/doctor/parts.hpp"

#include "base/exception.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cachefix/store/local_root.hpp"
#include "cli/commands/cachefix_choices.hpp"
#include "cli/commands/conda/link.hpp"
#include "cli/commands/conda/staged.hpp"
#include "cli/commands/conda/support.hpp"
#include "cli/commands/export/support.hpp"
#include "cli/commands/mount/support.hpp"
#include "cli/commands/stage/stage.hpp"
#include "cli/commands/up/on_mounts.hpp"
#include "cli/commands/up/part.hpp"
#include "cli/execute.hpp"
#include "exports/diagnose.hpp"
#include "exports/host.hpp"
#include "exports/server.hpp"
#include "exports/system_directory.hpp"
#include "mounts/diagnose.hpp"
#include "mounts/recover.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>
#include <tuple>

namespace sharefs::cli {

namespace {

/// Returns SF602: `what` could not be examined.
Diagnosis failure(const std::string& what, const Error& error) {
  // If only root may read it, that is not an error of the machine.
  const auto severity = error.code == ErrorCode::permission ? Severity::info : Severity::error;
  return {severity, "SF602", what, error.message, error.hint, ""};
}

/// Collects the findings that a flow reports as findings of the part. Its other messages are dropped: they are for a
/// person who runs the flow alone.
plan::Say say_to(Part& part) {
  return {.report = [&part](const Diagnoses& found) { mounts::append(part.found, found); }};
}

/// What each part is examined with.
struct PartInput {
  Context& context;
  const Examination& how;
  const config::Config* config; ///< nullptr: there is none, or it cannot be used
  bool config_usable;           ///< false: there is one, and its error is reported
};

/// Returns the first directory in which the plan writes a file and that cannot be written, and why.
std::optional<std::pair<std::string, Error>> find_obstacle(Context& context, const plan::Plan& plan) {
  if (context.system.identity().uid != 0)
    return std::nullopt;
  for (const auto& step : plan.steps)
    if (const auto* const write = std::get_if<plan::File>(&step.action); write && write->after)
      if (const auto writable = check_writable(context.system, parent_path(write->path)); !writable)
        return std::pair{parent_path(write->path), writable.error()};
  return std::nullopt;
}

/// Returns SF603: the machine differs from sharefs.yaml, and the command `fix` would change that.
Diagnosis pending(const PartInput& input, Severity severity, const std::string& what, const plan::Plan& plan,
                  const std::string& fix) {
  constexpr std::size_t k_named = 3;
  std::vector<std::string> reasons;
  for (const auto& step : plan.steps) {
    auto reason = step.why;
    if (const auto* const access = std::get_if<plan::SetAccess>(&step.action); access != nullptr && access->before)
      reason = fmt::format("{}, now {}", plan::describe(step.action), format_mode(access->before->mode));
    if (std::ranges::find(reasons, reason) == reasons.end())
      reasons.push_back(std::move(reason));
  }
  const auto more = reasons.size() > k_named ? reasons.size() - k_named : 0;
  reasons.resize(reasons.size() - more);
  auto message = fmt::format("not as sharefs.yaml says, by {}: {}{}", count_of(plan.steps.size(), "step"),
                             join(reasons, ", "), more == 0 ? "" : fmt::format(", and {} more", more));
  const auto obstacle = find_obstacle(input.context, plan);
  if (!obstacle)
    return {severity, "SF603", what, std::move(message), "", fix};
  const auto& [directory, why] = *obstacle;
  return {severity,
          "SF603",
          what,
          fmt::format("{}; and this cannot be mended, since {} cannot be written: {}", message, directory, why.message),
          fmt::format("{}; then `{}`", why.hint, fix),
          ""};
}

/// Returns SF601 about the file, or about the place in it with which the message begins.
Diagnosis unusable(std::string file, const Error& error) {
  auto message = error.message;
  if (const auto end = message.find(": "); end != std::string::npos && message.starts_with(file)) {
    file = message.substr(0, end);
    message = message.substr(end + 2);
  }
  return {Severity::error, "SF601", std::move(file), std::move(message), error.hint, "sharefs config check"};
}

// ---- the parts ----

void examine_journal(const PartInput& input, Part& part) {
  const auto found = diagnose_journal(input.context);
  part.found = found ? *found : Diagnoses{failure("journal", found.error())};
}

/// Reports SF146 on a host that has exports, whoever wrote them.
Diagnoses diagnose_server(sys::System& system, bool serves) {
  const auto files = exports::read_host_files(system.files());
  if (!serves && (!files || std::ranges::all_of(files->files, [](const auto& file) { return file.taken == 0; })))
    return {};
  const auto state = exports::probe_server(system);
  return state ? exports::diagnose_server(*state) : Diagnoses{failure("nfsd", state.error())};
}

/// Examines this host's exports of sharefs.yaml, as `export --all` would make them.
Result<void> examine_own_exports(const PartInput& input, const OwnServers& own, Part& part) {
  auto& system = input.context.system;
  TRY_ASSIGN(const auto request, find_exports(system, *input.config, own, false));
  TRY(require_root(input.context, "only root can export"));
  exports::Proposed proposed;
  TRY(exports::propose(system, *request, proposed, say_to(part)));
  part.plan = proposed.plan;
  if (part.plan.empty()) {
    TRY_ASSIGN(const auto found, exports::verify(system, *request, proposed, {}));
    mounts::append(part.found, found);
  } else {
    part.found.push_back(pending(input, Severity::error, "exports", part.plan, "sharefs export --all"));
  }
  return {};
}

void examine_exports(const PartInput& input, Part& part) {
  auto& system = input.context.system;
  const auto own = input.config == nullptr ? OwnServers{} : find_own_servers(system, *input.config);
  const auto count = own.exports();
  if (count > 0) {
    part.seen = count_of(count, "export");
    const auto examined = examine_own_exports(input, own, part);
    if (!examined && !has_errors(part.found)) // otherwise the errors explain it
      part.found.push_back(failure("sharefs export", examined.error()));
  }
  auto files = exports::check(system, {}, {}).map([](exports::Checked&& checked) { return std::move(checked.found); });
  if (!files)
    files = Diagnoses{failure("sharefs export check", files.error())};
  if (count > 0) // sharefs' own file was already compared with sharefs.yaml
    std::erase_if(*files, [](const Diagnosis& one) { return one.subject.starts_with(exports::k_own_file); });
  mounts::append(part.found, *files);
  mounts::append(part.found, diagnose_server(system, count > 0));
  if (const auto etab = exports::read_etab(system.files()))
    if (const auto table = system.mounts())
      mounts::append(part.found, exports::diagnose_in_force(*etab, *table));
}

void plan_recovery(const PartInput& input, mounts::Observation seen, const mounts::BootFacts& at_boot, Part& part) {
  const auto known = probe_recovery(input.context, std::move(seen));
  auto recovery = mounts::plan_recovery(known);
  for (auto& one : recovery.diagnoses) // the reason why a mount is left as it is
    if (std::ranges::none_of(
            part.found, [&](const Diagnosis& said) { return said.code == one.code && said.subject == one.subject; }))
      part.found.push_back(std::move(one));
  part.plan.add(recovery.plan);
  part.plan.add(mounts::plan_boot(input.context.system, at_boot, known.seen, recovery.blocked).plan);
}

void examine_mounts(const PartInput& input, Part& part) {
  auto& context = input.context;
  mounts::ProbeRequest request;
  request.wanted = mount_points(context.system, input.config);
  request.others = request.want_access = request.targets = true;
  request.server_deadline = input.how.timeout;
  request.path_deadline = std::min(input.how.timeout, mounts::k_recovery_deadline);
  auto seen = observe(context, request);
  if (!seen) {
    part.found.push_back(failure("mounts", seen.error()));
    return;
  }
  leave_out_elsewhere(context.system, input.config, seen->states);
  if (!seen->states.empty())
    part.seen = count_of(seen->states.size(), "mount");
  part.found = mounts::diagnose_host(context.system, *seen, readers(context), request.path_deadline);

  std::vector<std::string> unsure; // mount points whose options are not known, or that are not mounted
  std::vector<mounts::MountPoint> ready;
  for (const auto& state : seen->states)
    if (!mounts::is_good(state.health))
      unsure.push_back(state.point.target);
    else if (state.health != mounts::Health::autofs_idle)
      ready.push_back(state.point);
  const auto at_boot = mounts::read_boot_facts(context.system);
  const auto boot = mounts::plan_boot(context.system, at_boot, *seen, unsure);
  mounts::append(part.found, boot.diagnoses);
  if (input.config != nullptr)
    mounts::append(part.found, mounts::diagnose_left_at_boot(at_boot, request.wanted));
  mounts::append(part.found, mounts::diagnose_not_mounted_at_boot(at_boot, request.wanted, seen->table));
  if (!boot.plan.empty())
    part.found.push_back(pending(input, Severity::warning, "boot", boot.plan, "sharefs mount --all"));
  if (input.config != nullptr) {
    const auto on = plan_shares(context.system, *input.config, std::move(ready), request.path_deadline);
    mounts::append(part.found, on.found);
    if (!on.plan.empty())
      part.found.push_back(pending(input, Severity::warning, "shares", on.plan, "sharefs mount --all"));
    part.plan.add(on.plan);
  }
  if (input.how.plans)
    plan_recovery(input, *seen, at_boot, part);
}

/// Reports SF605: an environment of the store that cannot be used.
Diagnoses diagnose_environments(const std::vector<conda::ListedEnvironment>& rows) {
  Diagnoses found;
  for (const auto& row : rows)
    if (row.availability != conda::Availability::good)
      found.push_back({Severity::warning, "SF605", row.path,
                       fmt::format("{}{}{}", to_string(row.availability), row.detail.empty() ? "" : ": ", row.detail),
                       "`sharefs conda list` shows all environments", ""});
  return found;
}

/// Examines the links of sharefs.yaml, as `conda link --all` would make them.
Result<void> examine_links(const PartInput& input, Part& part) {
  TRY_ASSIGN(const auto links, probe_links(input.context.system, *input.config));
  part.found = conda::diagnose(links.state, links.request);
  conda::lower_not_shared_yet(part.found);
  const auto lacks_conda = [](const Diagnosis& one) { return one.code == "SF314"; };
  const auto not_looked_at = std::ranges::count(part.found, "SF311", &Diagnosis::code); // a user can read one home only
  if (std::ranges::count_if(part.found, lacks_conda) + not_looked_at == std::ssize(input.config->conda->users()))
    std::erase_if(part.found, lacks_conda); // on a storage server nobody has conda
  part.plan = conda::plan(links.state, links.request);
  if (!part.plan.empty())
    part.found.push_back(pending(input, Severity::warning, "conda", part.plan, "sharefs conda link --all"));
  return {};
}

void examine_store(const PartInput& input, Part& part) {
  part.is_root = false;
  if (has_links(*input.config->conda)) {
    part.seen = "conda";
    if (const auto examined = examine_links(input, part); !examined)
      part.found.push_back(failure("sharefs conda link", examined.error()));
  }
  const bool reachable = !has_errors(part.found); // otherwise the command would wait for the store once more
  if (!reachable)
    return;
  const auto listing = read_inventory(input.context, "");
  if (!listing) {
    part.found.push_back(failure("sharefs conda list", listing.error()));
    return;
  }
  mounts::append(part.found, listing->found);
  if (part.found.empty())
    part.found = diagnose_environments(listing->environments);
}

void examine_conda(const PartInput& input, Part& part) {
  if (input.config != nullptr && input.config->conda)
    examine_store(input, part);
  mounts::append(part.found, conda::diagnose_staged(staged_images(input.context, input.config)));
}

/// Returns the first user of sharefs.yaml whom this host knows, or else `nobody`.
sys::User choose_user(Context& context) {
  for (const auto& name : readers(context))
    if (auto user = context.system.user(name); user && user->uid != 0)
      return *user;
  constexpr unsigned k_nobody = 65534;
  return {"nobody", k_nobody, k_nobody, {k_nobody}, "/"};
}

void examine_caches(const PartInput& input, Part& part) {
  if (!input.config_usable)
    return; // its `caches.local` is not known, and the default is not what this host should have
  auto choices = choices_of(input.context);
  if (!choices)
    return;
  choices->local.environment.clear(); // only the variables that the directories name are set again
  for (const auto& directory : choices->local.directories)
    expand_variables(directory, [&](std::string_view name, std::size_t) {
      if (const auto value = input.context.environment(name))
        choices->local.environment.push_back(fmt::format("{}={}", name, *value));
      return std::optional<std::string>("");
    });
  const auto identity = input.context.system.identity();
  if (identity.uid == 0) // root may write everywhere, but users make the directories
    choices->local.as = choose_user(input.context);
  const auto root = cachefix::find_local_root(input.context.system, choices->local, identity);
  part.found = cachefix::diagnose(root, Severity::warning);
  if (identity.uid == 0)
    part.plan = cachefix::plan_local_directories(input.context.system, choices->local.directories, {},
                                                 exports::system_directory_reason);
  if (root.directory.empty())
    return;
  part.seen = "caches in " + (choices->local.as ? parent_path(root.directory) : root.directory);
  mounts::append(part.found, cachefix::diagnose_code(root, Severity::warning));
}

struct PartSpec {
  const char* name;
  void (*examine)(const PartInput&, Part&);
};
constexpr std::array k_parts{PartSpec{"mounts", examine_mounts}, PartSpec{"exports", examine_exports},
                             PartSpec{"conda", examine_conda}, PartSpec{"caches", examine_caches},
                             PartSpec{"journal", examine_journal}};

/// Examines one part. An exception in it becomes a diagnosis of the part, so that the other parts are still examined.
void examine_one(const PartSpec& spec, const PartInput& input, Part& part) {
  try {
    const ui::Progress progress(input.context.console, fmt::format("looking at {}", spec.name));
    spec.examine(input, part);
  } catch (...) {
    part.found.push_back({Severity::error, "SF602", spec.name, reason_of(std::current_exception()), "", ""});
  }
}

/// Removes the diagnoses that an earlier part has already made.
void drop_repeated(std::vector<Part>& parts) {
  std::set<std::pair<std::string, std::string>> said;
  for (auto& part : parts) {
    Diagnoses fresh;
    std::set<std::tuple<std::string, std::string, std::string>> here;
    for (const auto& one : part.found)
      if (!said.contains({one.code, one.subject}) && here.emplace(one.code, one.subject, one.message).second)
        fresh.push_back(one);
    for (const auto& one : fresh)
      said.emplace(one.code, one.subject);
    part.found = std::move(fresh);
  }
}

} // namespace

std::vector<Part> examine(Context& context, const Examination& how) {
  const auto end = sys::deadline_in(how.deadline);
  const auto config = context.config_if_any(Context::Unreadable::fails);
  const PartInput input{context, how, config ? *config : nullptr, config.has_value()};
  std::vector<Part> parts;
  auto& first = parts.emplace_back();
  first.name = "configuration";
  if (!config)
    first.found.push_back(unusable(context.config_path(), config.error()));
  else if (*config != nullptr)
    first.seen = base_name((*config)->file);
  for (const auto& spec : k_parts) {
    auto& part = parts.emplace_back();
    part.name = spec.name;
    if (sys::Clock::now() < end)
      examine_one(spec, input, part);
    else
      part.found.push_back({Severity::warning, "SF602", spec.name, "not examined: the deadline has passed",
                            "see the findings above, or give it more time: --deadline 5min", ""});
  }
  drop_repeated(parts);
  return parts;
}

} // namespace sharefs::cli
