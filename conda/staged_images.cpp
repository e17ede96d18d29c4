#include "conda/staged_images.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "conda/image.hpp"
#include "plan/check_action.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

namespace sharefs::conda {

namespace {

/// Returns the share that a mount needs; nullptr if it needs none.
const sys::MountEntry* share_under(const plan::Mount& mount, const sys::MountTable& table) {
  const auto* share = table.owner_of(mount.fs_type == sys::k_bind ? parent_path(mount.target) : mount.source);
  return share != nullptr && sys::is_nfs(*share) ? share : nullptr;
}

/// True if the copy for a directory of a share is empty.
bool is_empty(const StagedImage& one) {
  return one.is_bind() && !one.copy.is_whole();
}

} // namespace

std::string StagedImage::name() const {
  return base_name(parent_path(copy.tree.path));
}

std::vector<StagedCopy> find_copies(sys::System& system, const std::set<std::string>& stages,
                                    const std::set<unsigned>& makers) {
  constexpr std::size_t k_most = 10'000;
  const auto listed = [&](const std::vector<std::string>& paths) {
    sys::EntryRequest request;
    for (const auto& path : paths)
      request.queries.push_back({.path = path, .list = true, .links = sys::Links::trusted, .guarded = true});
    auto found = system.entries(request);
    std::erase_if(found, [](const sys::Entry& one) { return one.kind != sys::EntryKind::directory || one.shared; });
    return found;
  };
  std::vector<std::string> paths;
  for (const auto& stage : stages)
    for (const auto maker : makers)
      paths.push_back(join_path(stage, std::to_string(maker)));
  auto directories = listed(paths);
  for (int level = 0; level < 2; ++level) { // first directories of stores, then of environments in them
    paths.clear();
    for (const auto& directory : directories)
      for (const auto& name : directory.names)
        if (paths.size() < k_most)
          paths.push_back(join_path(directory.resolved, name));
    directories = listed(paths);
  }
  auto found = read_copies(system, directories);
  std::erase_if(found, [&](const StagedCopy& copy) {
    return copy.mark.kind == sys::EntryKind::unknown || (copy.mark.exists() && !makers.contains(copy.mark.uid));
  });
  const auto mounts = system.mounts();
  for (auto& copy : found) {
    const auto bind = bind_of(copy.tree.path, copy.what());
    if (!mounts || bind.target.empty())
      continue;
    copy.is_bound = mounts->is_bind(bind.target, bind.source);
    if (!copy.is_bound)
      copy.older = older_bind(system, bind, *mounts);
  }
  return found;
}

std::vector<StagedImage> find_staged_images(sys::System& system, const std::set<std::string>& stages,
                                            const std::vector<std::string>& binds) {
  const auto copies = find_copies(system, stages, {0});
  const auto marked = [](const StagedCopy& copy) { return std::pair(copy.mark.mtime, copy.mark.mtime_ns); };
  // The time of the newest copy by directory: older copies may still be in use, but are not mounted over it.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> newest;
  for (const auto& copy : copies)
    newest[copy.what().source] = std::max(newest[copy.what().source], marked(copy));
  std::vector<StagedImage> found;
  for (const auto& copy : copies) {
    const auto what = copy.what();
    const auto& path = copy.tree.path;
    if (what.source.empty())
      continue;
    if (!what.sha256.empty() && (copy.image.kind == sys::EntryKind::file || copy.is_on_share()))
      found.push_back({copy, mount_of_image(path, what, 0), copy.is_mounted(), copy.is_on_share()});
    // A copy is found while it is mounted over a directory, even if sharefs.yaml no longer names that.
    if (copy.is_bound || (contains(binds, what.source) && marked(copy) == newest[what.source]))
      found.push_back({copy, bind_of(path, what), copy.is_bound, true});
  }
  return found;
}

std::optional<plan::Unmount> older_bind(sys::System& system, const plan::Mount& bind, const sys::MountTable& table) {
  const auto* at = table.at(bind.target);
  if (at == nullptr)
    return {};
  const auto copies = parent_path(bind.source);
  auto older = plan::unmount_of(bind);
  older.source = plan::read_image_path(system, *at);
  older.fs_type = sys::k_image;
  if (!older.source.empty())
    return is_under(older.source, copies) ? std::optional(older) : std::nullopt;
  older.source = join_path(copies, base_name(at->root)); // no image is mounted, so it is a copy of files
  older.fs_type = sys::k_bind;
  const bool is_other = older.source != bind.source && table.is_bind(bind.target, older.source);
  return is_other ? std::optional(older) : std::nullopt;
}

bool is_missing(const StagedImage& image, const sys::MountTable& table) {
  const bool over_share = image.is_bind() && share_under(image.mount, table) != nullptr;
  return !image.is_mounted && !is_empty(image) && (!image.needs_share || over_share);
}

Diagnoses take_out_gone(sys::System& system, std::vector<StagedImage>& images) {
  std::map<std::optional<unsigned>, sys::EntryRequest> by_reader; // one request each, so a dead share delays it once
  for (const auto& one : images)
    by_reader[one.copy.what().reader].queries.push_back({.path = one.mount.target, .links = sys::Links::none});
  std::set<std::string> gone;
  for (auto& [reader, request] : by_reader) {
    if (reader)
      if (auto user = system.user(std::to_string(*reader)))
        request.as = std::move(*user);
    for (const auto& entry : system.entries(request))
      if (entry.kind == sys::EntryKind::missing)
        gone.insert(entry.path);
  }
  Diagnoses found;
  std::erase_if(images, [&](const StagedImage& one) {
    const auto& directory = one.mount.target;
    if (!gone.contains(directory))
      return false;
    found.push_back({Severity::warning, "SF535", one.name(),
                     directory + " is not there any more: its staged copy is not mounted over it",
                     fmt::format("`sharefs stage --drop {}` takes the copy away", shell_quote(directory)), ""});
    return true;
  });
  return found;
}

Diagnoses take_out_damaged(sys::System& system, std::vector<StagedImage>& images, const plan::Say& say) {
  Diagnoses found;
  std::erase_if(images, [&](const StagedImage& one) {
    if (one.is_mounted || one.is_bind() || !one.copy.is_doubtful())
      return false;
    const ImageNote copied{.sha256 = one.copy.what().sha256, .bytes = one.copy.image.size};
    const auto good = is_as_noted(system, one.mount.source, copied, say);
    if (good && *good)
      return false;
    const auto number = generation_number(one.copy.name());
    found.push_back({Severity::error, "SF536", one.mount.source,
                     good ? std::string("somebody has written into it since it was copied: it is not mounted")
                          : good.error().message,
                     fmt::format("`sharefs {}` brings it again", number ? "conda stage " + shell_quote(one.name())
                                                                        : "stage " + shell_quote(one.copy.source())),
                     ""});
    return true;
  });
  return found;
}

plan::Plan mount_staged(const std::vector<StagedImage>& images, bool needs_share) {
  plan::Plan plan;
  for (const auto& image : images) {
    if (image.is_mounted || image.needs_share != needs_share)
      continue;
    const auto& copy = image.copy.tree.path;
    if (!image.is_bind() && image.copy.tree.kind != sys::EntryKind::directory)
      plan.add_bookkeeping(copy, "it is mounted there", plan::make_directory(copy, 0755, {}, true));
    if (image.older())
      plan.add(copy, k_why_older, *image.older());
    plan.add(copy, "the staged copy of " + image.name(), image.mount);
  }
  return plan;
}

void unmount_staged(const std::vector<StagedImage>& images, bool lazy, const sys::MountTable& table, plan::Plan& plan) {
  std::vector<plan::Step> first;
  std::map<std::string, std::string> groups; // by copy: groups run in parallel, so all mounts of a copy share a group
  for (auto image = images.rbegin(); image != images.rend(); ++image) { // upper mounts are unmounted first
    if (!image->is_mounted && !image->older())
      continue;
    auto unmount = image->older().value_or(plan::unmount_of(image->mount));
    unmount.lazy = lazy;
    const auto& copy = image->copy.tree.path;
    auto& group = groups.try_emplace(copy, copy).first->second;
    bool goes_with_share = false;
    if (const auto* share = image->needs_share ? share_under(image->mount, table) : nullptr)
      for (const auto& step : plan.steps)
        if (const auto* its = std::get_if<plan::Unmount>(&step.action);
            its != nullptr && its->target == share->target) {
          group = step.group;
          goes_with_share = image->is_bind() && lazy; // it cannot be reached through a dead share
        }
    if (goes_with_share)
      continue;
    first.push_back({.group = group, .why = "the staged copy of " + image->name(), .action = std::move(unmount)});
  }
  plan.steps.insert(plan.steps.begin(), first.begin(), first.end());
}

Diagnoses diagnose_staged(const std::vector<StagedImage>& images) {
  Diagnoses found;
  for (const auto& image : images)
    if (!image.is_mounted)
      found.push_back({Severity::warning, "SF535", image.name(),
                       fmt::format("the staged image {} is not mounted: the share is used", image.copy.name()), "",
                       image.needs_share ? "sharefs mount --all" : "sharefs conda stage --mount"});
  return found;
}

std::string staged_unit_text(const Argv& program, const std::set<std::string>& stages) {
  const auto words = [](const auto& plain, std::string (*quoted)(std::string_view)) {
    std::vector<std::string> texts; // a plain word stays as it is, so that units of earlier versions are not changed
    for (const auto& word : plain)
      texts.push_back(shell_quote(word) == word ? unit_value(word) : quoted(word));
    return join(texts, " ");
  };
  return fmt::format("# Written by sharefs: `sharefs down` removes this file\n"
                     "[Unit]\nDescription=staged images of conda environments\n"
                     "RequiresMountsFor={}\nBefore=slurmd.service\n\n"
                     "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={} conda stage --mount --yes\n\n"
                     "[Install]\nWantedBy=multi-user.target\n",
                     words(stages, unit_word), words(program, unit_command));
}

} // namespace sharefs::conda
