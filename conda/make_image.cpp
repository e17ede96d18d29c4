#include "conda/make_image.hpp"

#include "base/path.hpp"
#include "base/try.hpp"
#include "conda/change.hpp"
#include "conda/make_generation.hpp"
#include "conda/prefix.hpp"
#include "conda/staging.hpp"
#include "plan/apply.hpp"
#include "tree/survey.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::conda {

namespace {

constexpr std::uint64_t k_part_of_tree = 2; ///< an image may take this part of the tree's size; a third is usual

/// True for a stale compiled file. Python would compile its source at each start, and could not write the result to a
/// read-only image.
bool is_stale_in(const tree::Entry& file, std::string_view head, const tree::Packing::Find& find) {
  const auto source = is_compiled(file.path) ? source_of(file.path) : std::string();
  const auto* there = source.empty() ? nullptr : find(source);
  return there != nullptr && is_stale(head, there->mtime, there->size);
}

/// Returns the reason why the image has to be made anew; empty if it is unchanged and may be mounted.
Result<std::string> reason_to_remake(sys::System& system, const SharedEnvironment& now, const Image& image,
                                     const plan::Say& say) {
  if (!image.exists())
    return "it is not of this generation, or was cut off";
  if (!image.is_trusted(system.entry({.path = now.store, .follow = true}).uid))
    return "others than root or the owner of the store could have written it";
  TRY_ASSIGN(const auto good, is_as_noted(system, image.path, *image.note, say));
  return good ? "" : "its content is not the one that was noted when it was made";
}

/// Returns the present generation, whose record can be read: an image that names another one is never used.
Result<const StoredGeneration*> find_current(const SharedEnvironment& now) {
  const auto* one = now.find(now.current);
  if (!one->record)
    return fail(ErrorCode::failed, fmt::format("generation {} of `{}` {}", now.current, now.name, one->problem),
                "`sharefs conda rollback` shows another one");
  return one;
}

} // namespace

Result<ImageNote> make_image(sys::System& system, tree::Packing packing, const Generation& record,
                             const std::string& name, const plan::Say& say) {
  const auto directory = system.entry({.path = packing.file}); // it is missing, so `ancestor` is its directory
  TRY(check_room(system, directory, {.files = 1, .bytes = record.bytes / k_part_of_tree}, ""));
  if (!name.empty())
    packing.leaves_out = is_stale_in;
  packing.made = record.created;
  packing.added = protection_marks(name, record.python);
  std::erase_if(packing.added, [](const tree::AddedFile& one) { return base_name(one.path) != "EXTERNALLY-MANAGED"; });
  tree::Options options;
  options.total_files = record.files;
  options.total_bytes = record.bytes;
  TRY_ASSIGN(const auto packed, tree::pack(packing, options, say.progress("making the image of " + packing.tree.path)));
  return ImageNote{packed.sha256, packed.bytes, record.created, packed.files};
}

Result<void> clear_place(sys::System& system, const std::string& path) {
  const auto there = system.entry({.path = path, .links = sys::Links::trusted});
  if (there.kind == sys::EntryKind::directory)
    return fail(ErrorCode::conflict, path + " is a directory, where an image or its note is to lie",
                fmt::format("see what it holds, then `mv {0} {0}.old`", shell_quote(path)));
  return there.exists() ? system.files().remove(path) : Result<void>{};
}

Result<void> write_image_note(sys::System& system, const ImageNote& note, const std::string& generation) {
  const auto path = image_note_path(generation);
  auto cleared = clear_place(system, path);
  return cleared ? system.files().write_if(path, std::nullopt, format_image_note(note)) : cleared;
}

Result<bool> is_as_noted(sys::System& system, const std::string& path, const ImageNote& note, const plan::Say& say) {
  tree::Options options;
  options.total_bytes = note.bytes;
  return tree::read_content({.path = path, .root = system.files().root()}, options, say.progress("reading " + path))
      .map([&](const tree::FileContent& content) { return content == tree::FileContent{note.sha256, note.bytes}; });
}

Result<void> publish_image(sys::System& system, const std::string& file, const ImageNote& note,
                           const std::string& generation) {
  TRY(write_image_note(system, note, generation));
  TRY(clear_place(system, image_path(generation)));
  return plan::apply_action(plan::Rename{file, image_path(generation), std::nullopt}, system).map([](plan::Outcome) {});
}

Result<ImagePlan> plan_image(sys::System& system, const std::string& store, const std::string& name,
                             const std::string& letters, const plan::Say& say) {
  TRY_ASSIGN(auto environment, find_shared(system, store, name));
  ImagePlan imaging{.environment = std::move(environment), .file = {}, .plan = {}};
  const auto& now = imaging.environment;
  TRY_ASSIGN(const auto* one, find_current(now));
  const auto path = now.path(now.current);
  const auto why = reason_to_remake(system, now, probe_image(system, path, one->record->created), say);
  if (!why || why->empty())
    return why ? Result<ImagePlan>(std::move(imaging)) : fail(why.error());
  imaging.file = image_path(join_path(now.root.path, fmt::format("new-{}.{}", generation_name(now.current), letters)));
  if (one->image.kind == sys::EntryKind::file)
    imaging.plan.add(name, *why, removal_of(one->image));
  imaging.plan.add(name, fmt::format("generation {} in one file, which is made first", now.current),
                   plan::Rename{imaging.file, image_path(path), std::nullopt});
  return imaging;
}

Result<MadeImage> make_missing_image(sys::System& system, const ImagePlan& imaging, const LeaseSettings& lease,
                                     const plan::Say& say) {
  TRY_ASSIGN(auto held, hold(system, imaging.environment, lease, say));
  const auto& now = held.environment;
  TRY_ASSIGN(const auto* one, find_current(now));
  const auto& record = *one->record;
  auto there = probe_image(system, now.path(now.current), record.created);
  TRY_ASSIGN(const auto why, reason_to_remake(system, now, there, say));
  if (why.empty()) // another command has made it while this one waited for the lease
    return MadeImage{std::move(held.lease), std::move(*there.note)};
  if (one->image.kind != sys::EntryKind::file)
    TRY(clear_place(system, there.path));
  tree::Packing image{.tree = {.path = now.path(now.current), .root = system.files().root()}, .file = imaging.file};
  image.tree.device = one->entry.device;
  image.tree.inode = one->entry.inode;
  auto guard = std::make_unique<ScratchTree>(system, image.file, say);
  TRY_ASSIGN(auto note, make_image(system, image, record, now.name, say));
  TRY(write_image_note(system, note, image.tree.path));
  TRY(held.lease.check());
  return MadeImage{std::move(held.lease), std::move(note), std::move(guard)};
}

} // namespace sharefs::conda
