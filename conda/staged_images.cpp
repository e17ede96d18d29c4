#include "conda/staged_images.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::conda {

namespace {

constexpr std::size_t k_longest_staged_mark = 8192;
/// Of one directory: whoever is root has made them, but a loop over them has an end.
constexpr std::size_t k_most_staged = 10'000;

sys::EntryQuery listing(const std::string& path) {
  return {.path = path, .list = true, .links = sys::Links::trusted, .guarded = true};
}

/// The directories in each of `directories`, but for those that lie on a share.
std::vector<sys::Entry> directories_in(sys::System& system, const std::vector<sys::Entry>& directories) {
  sys::EntryRequest request;
  for (const auto& directory : directories)
    for (const auto& name : directory.names)
      if (directory.kind == sys::EntryKind::directory && !directory.shared && request.queries.size() < k_most_staged)
        request.queries.push_back(listing(join_path(directory.resolved, name)));
  return request.queries.empty() ? std::vector<sys::Entry>{} : system.entries(request);
}

/// Has it the mark of an image, by root? Its third line is the checksum.
bool is_marked(const sys::Entry& mark) {
  return mark.kind == sys::EntryKind::file && mark.uid == 0 && split_lines(mark.content).size() == 3;
}

} // namespace

std::vector<StagedImage> find_staged_images(sys::System& system, const std::set<std::string>& stages) {
  std::vector<sys::Entry> of_root;
  for (const auto& stage : stages)
    of_root.push_back(system.entry(listing(join_path(stage, "0"))));
  const auto environments = directories_in(system, directories_in(system, of_root));
  std::vector<StagedImage> found;
  sys::EntryRequest request;
  for (const auto& environment : environments)
    for (const auto& name : environment.names) {
      const auto copy = join_path(environment.resolved, name.substr(0, name.find('.')));
      if (join_path(environment.resolved, name) != image_path(copy) || found.size() >= k_most_staged)
        continue;
      found.push_back({.name = base_name(environment.resolved), .copy = copy});
      request.queries.push_back({.path = copy, .links = sys::Links::none, .guarded = true});
      request.queries.push_back({.path = complete_mark(copy),
                                 .read_bytes = k_longest_staged_mark,
                                 .links = sys::Links::none,
                                 .guarded = true});
    }
  const auto entries = found.empty() ? std::vector<sys::Entry>{} : system.entries(request);
  std::vector<StagedImage> whole;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const StagedCopy copy{.tree = entries[2 * i], .mark = entries[2 * i + 1]};
    found[i].has_mount_point = copy.tree.kind == sys::EntryKind::directory;
    found[i].is_mounted = copy.is_mounted();
    if (is_marked(copy.mark))
      whole.push_back(std::move(found[i]));
  }
  return whole;
}

plan::Plan mount_staged(const std::vector<StagedImage>& images) {
  plan::Plan plan;
  for (const auto& image : images) {
    if (image.is_mounted)
      continue;
    if (!image.has_mount_point)
      plan.add_bookkeeping(image.copy, "it is mounted there", plan::make_directory(image.copy, 0755, {}, true));
    plan.add(image.copy, "the staged image of " + image.name, mount_of_image(image.copy));
  }
  return plan;
}

plan::Plan unmount_staged(const std::vector<StagedImage>& images, bool lazy) {
  plan::Plan plan;
  for (const auto& image : images)
    if (image.is_mounted)
      add_unmount(image.copy, image.copy, "the staged image of " + image.name, plan);
  for (auto& step : plan.steps)
    std::get<plan::Unmount>(step.action).lazy = lazy;
  return plan;
}

Diagnoses diagnose_staged(const std::vector<StagedImage>& images) {
  Diagnoses found;
  for (const auto& image : images)
    if (!image.is_mounted)
      found.push_back({Severity::warning, "SF535", image.name,
                       fmt::format("the staged image {} is not mounted: the share is used", base_name(image.copy)), "",
                       "sharefs conda stage --mount"});
  return found;
}

std::string staged_unit_text(const Argv& program, const std::set<std::string>& stages) {
  const auto escaped = [](const std::string& words) { // systemd.unit(5), specifiers
    std::string text;
    for (const char byte : words)
      text += byte == '%' ? "%%" : std::string(1, byte);
    return text;
  };
  return fmt::format("# Written by sharefs: `sharefs down` removes this file\n"
                     "[Unit]\nDescription=staged images of conda environments\n"
                     "RequiresMountsFor={}\nBefore=slurmd.service\n\n"
                     "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={} conda stage --mount --yes\n\n"
                     "[Install]\nWantedBy=multi-user.target\n",
                     escaped(join({stages.begin(), stages.end()}, " ")), escaped(shell_join(program)));
}

} // namespace sharefs::conda
