#include "conda/staged_path.hpp"

#include "base/argv.hpp"
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "conda/change.hpp"
#include "conda/homes.hpp"
#include "plan/apply.hpp"
#include "sys/fs/sha256.hpp"
#include "sys/process/wire.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace sharefs::conda {

namespace {

constexpr std::uint64_t k_large_on_average = 64U << 20U;
constexpr std::size_t k_largest_list = 16U << 20U;
const std::string k_unfinished = "new-"; // the beginning of the name of an image that is being made

/// Returns the beginning of the names of all images of a directory. NAME is cut, because more is added to it and a file
/// system takes NAME_MAX bytes.
std::string image_prefix(const std::string& path) {
  constexpr std::size_t k_most_of_name = 200;
  return base_name(path).substr(0, k_most_of_name) + "-" + sys::sha256(path).substr(0, 8) + "-";
}

std::string list_path(const std::string& packed) {
  return packed + ".files";
}

/// True if each entry lies in a directory that comes before it in the list, and no name occurs twice. Otherwise the
/// owner of the store could name a file below a link of the list: root would follow that link on every node, and write
/// any file there.
bool is_tree(const tree::Listing& listing) {
  std::set<std::string> names, directories;
  for (const auto& one : listing.entries) {
    const auto path = "/" + one.path;
    const bool is_in_place = one.path.empty()
                                 ? names.empty() && S_ISDIR(one.mode)
                                 : normalize_path(path) == path && directories.contains(parent_path(path).substr(1));
    if (!is_in_place || !names.insert(one.path).second)
      return false;
    if (S_ISDIR(one.mode))
      directories.insert(one.path);
  }
  return true;
}

/// Returns the reason why nothing in the directory of images is used; empty if only its rightful owner can have made
/// it: root, the owner of the directory above, or in a directory of root's the user as whom find_packer() works there.
/// This process's user trusts what is the user's own.
std::string why_untrusted(sys::System& system, const sys::Entry& above, const sys::Entry& store,
                          const std::vector<std::string>& readers) {
  constexpr std::uint32_t k_others_write = 0022;
  const auto self = static_cast<std::uint32_t>(system.identity().uid);
  const bool is_rightful = store.uid == 0 || store.uid == self || store.uid == above.uid;
  if (!store.exists() || is_rightful || (above.exists() && (above.mode & k_others_write) == 0))
    return {};
  if (above.uid == 0)
    if (const auto by = read_as_permitted(system, {.queries = {{.path = store.path, .follow = true}}}, readers).by;
        by && by->uid == store.uid)
      return {};
  return fmt::format("{} belongs to user {}, and {}, which others may write to, to user {}: nothing in it is used",
                     store.path, store.uid, above.path, above.uid);
}

Result<tree::Survey> survey_directory(sys::System& system, const PathStagingRequest& request, const plan::Say& say) {
  auto survey = tree::survey({.path = request.path, .root = system.files().root()}, {.as = request.how.copying.reader},
                             say.progress("looking at " + request.path));
  if (!survey && survey.error().code == ErrorCode::permission)
    survey.error().hint = "run the command as a user who may read all that it holds, or stage a directory beside that";
  return survey;
}

} // namespace

ImageDirectory probe_images(sys::System& system, const PathStagingRequest& request) {
  const auto entries = system.entries({.queries = {{.path = parent_path(request.store), .follow = true, .list = true},
                                                   {.path = request.store, .follow = true, .list = true}},
                                       .as = request.how.copying.reader});
  const auto& store = entries.back();
  return {store.resolved, store.uid, why_untrusted(system, entries.front(), store, request.readers)};
}

Result<std::optional<tree::Listing>> read_list(sys::System& system, const PathStagingRequest& request,
                                               const std::string& packed, std::uint32_t store_owner) {
  const auto entry =
      system
          .entries(
              {.queries = {{.path = list_path(packed), .read_bytes = k_largest_list, .links = sys::Links::trusted}},
               .as = request.how.copying.reader})
          .front();
  TRY(check_read(entry));
  if (!is_trusted(entry, store_owner))
    return std::nullopt;
  sys::WireReader reader(entry.content);
  auto listing = reader.get<tree::Listing>();
  return reader.ok() && is_tree(listing) ? std::optional(std::move(listing)) : std::nullopt;
}

Result<Packer> find_packer(sys::System& system, const std::string& store, const std::vector<std::string>& readers) {
  auto seen = read_as_permitted(
      system, {.queries = {{.path = parent_path(store), .follow = true}, {.path = store, .follow = true}}}, readers);
  auto place = seen.entries.back();
  const bool exists = place.exists();
  if (!exists)
    place = system.entries({.queries = {{.path = place.ancestor, .follow = true}}, .as = seen.by}).front();
  if (system.identity().uid != 0 || (place.uid == 0 && (exists || !seen.by)))
    return Packer{};
  if (auto why = why_untrusted(system, seen.entries.front(), seen.entries.back(), readers); !why.empty())
    return fail(ErrorCode::permission, std::move(why),
                fmt::format("see who made it, then `mv {0} {0}.old`, or `chown {1} {0}`", shell_quote(store),
                            seen.entries.front().uid));
  TRY_ASSIGN(auto owner, place.uid == 0 ? Result<sys::User>(std::move(*seen.by)) : owner_of(system, place));
  return Packer{std::move(owner), place.path};
}

std::string packed_image(const PathStagingRequest& request, const tree::Survey& survey) {
  return join_path(request.store, image_prefix(request.path) + survey.fingerprint.substr(0, k_hash_digits));
}

/// Returns the survey of the copy that is mounted over the directory by now: another command may have staged it since.
std::optional<tree::Survey> survey_of_bound(sys::System& system, const PathStagingRequest& request) {
  for (const auto& copy : list_staged_paths(system, {request.at}, {0}))
    if (copy.is_bound && copy.source() == request.path)
      return survey_in(copy.what().state);
  return request.bound;
}

Result<void> check_unchanged(sys::System& system, const PathStagingRequest& request, const tree::Survey& before,
                             const plan::Say& say) {
  const auto bound = survey_of_bound(system, request);
  TRY_ASSIGN(const auto now, bound ? Result<tree::Survey>(*bound) : survey_directory(system, request, say));
  return now == before ? Result<void>{}
                       : fail(ErrorCode::conflict, request.path + " has changed while it was read",
                              "run the command again when nobody writes there");
}

Result<PackedPath> survey_path(sys::System& system, const PathStagingRequest& request, const plan::Say& say) {
  const auto store = probe_images(system, request);
  if (is_under(store.resolved, request.path))
    return fail(ErrorCode::usage,
                fmt::format("{} holds {}, where images of directories lie", request.path, request.store),
                "stage what lies in it, or set `stage.store` in sharefs.yaml to another directory of the share");
  TRY_ASSIGN(auto survey,
             request.bound ? Result<tree::Survey>(*request.bound) : survey_directory(system, request, say));
  PackedPath packed{.survey = std::move(survey), .image = {}};
  packed.image = packed_image(request, packed.survey);
  const auto image = probe_image(system, packed.image, 0, request.how.copying.reader);
  // An image that others could have written counts as missing for a user who can make a trusted one.
  const auto uid = static_cast<std::uint32_t>(system.identity().uid);
  const bool makes_trusted = uid == 0 || uid == store.owner;
  TRY(image.check());
  TRY_ASSIGN(const auto list, read_list(system, request, packed.image, store.owner));
  packed.exists = store.untrusted.empty()
                      ? (image.exists() && (image.is_trusted(store.owner) || !makes_trusted)) || list
                      : !makes_trusted;
  return packed;
}

std::string text_of(const tree::Survey& survey) {
  return fmt::format("{}:{}:{}", survey.fingerprint, survey.files, survey.bytes);
}

std::optional<tree::Survey> survey_in(std::string_view text) {
  const auto parts = split(text, ':');
  const auto files = parts.size() == 3 ? parse_number<std::uint64_t>(parts[1]) : std::nullopt;
  const auto bytes = files ? parse_number<std::uint64_t>(parts[2]) : std::nullopt;
  if (!bytes || !is_hash(parts[0]))
    return std::nullopt;
  return tree::Survey{.files = *files, .bytes = *bytes, .fingerprint = parts[0]};
}

bool is_few_large(const tree::Survey& survey) {
  return survey.files > 0 && survey.bytes / survey.files >= k_large_on_average;
}

namespace {

/// Removes images and lists of the directory's earlier content, and unfinished images and notes that were not written
/// to for an hour, by the server's clock: their command was killed.
void remove_older(sys::System& system, const PathStagingRequest& request, const PackedPath& packed) {
  constexpr std::int64_t k_abandoned = 3600; // seconds
  const auto prefix = image_prefix(request.path);
  sys::EntryRequest unfinished{.queries = {{.path = image_path(packed.image), .links = sys::Links::trusted},
                                           {.path = list_path(packed.image), .links = sys::Links::trusted}}};
  for (const auto& name : system.entry({.path = request.store, .follow = true, .list = true}).names) {
    const auto path = join_path(request.store, name);
    if (name.starts_with(prefix) && !path.starts_with(packed.image))
      std::ignore = system.files().remove(path);
    const bool is_half_written =
        name.starts_with('.') && name.find(".sharefs-") != std::string::npos; // Files::write_if()
    if (is_half_written || (name.starts_with(k_unfinished) && name.ends_with(image_path(""))))
      unfinished.queries.push_back({.path = path, .links = sys::Links::none});
  }
  const auto entries = system.entries(unfinished);
  const auto made = std::max(entries[0].mtime, entries[1].mtime); // the server's time now, since it was just made
  for (auto one = entries.begin() + 2; one != entries.end(); ++one)
    if (one->kind == sys::EntryKind::file && one->mtime < made - k_abandoned)
      std::ignore = system.files().remove(one->path);
}

Result<void> write_list(sys::System& system, const PathStagingRequest& request, const PackedPath& packed,
                        const StageAccess& access, const plan::Say& say) {
  TRY_ASSIGN(const auto listing,
             tree::list_contents({.path = request.path, .root = system.files().root()},
                                 {.total_bytes = packed.survey.bytes}, say.progress("reading " + request.path)));
  TRY(check_unchanged(system, request, packed.survey, say));
  const auto path = list_path(packed.image);
  TRY(clear_place(system, path));
  mode_t readers = S_IRGRP | S_IROTH;
  for (const auto& one : listing.entries)
    tree::narrow_readers(readers, one.mode);
  const bool is_for_all = (readers & S_IROTH) != 0;
  const auto gid = access.gid || is_for_all ? access.gid : std::optional(listing.gid);
  const auto mode = tree::mode_for(readers, access.mode, gid == listing.gid);
  const bool sets_group = gid && (mode & (S_IRGRP | S_IROTH)) != 0;
  TRY(system.files().write_if(path, std::nullopt, sys::WireWriter().put(listing).bytes(), sets_group ? 0400 : mode));
  // Where the group cannot be set, the list stays its owner's, and others copy without it.
  if (const auto step = sets_group ? admit(system.entry({.path = path}), {mode, gid}) : std::nullopt)
    std::ignore = plan::apply_action(*step, system);
  return {};
}

/// Makes the directory of images. A store of environments above it that does not exist yet gets the mode of the
/// directory above the store.
Result<void> make_store(sys::System& system, const std::string& path) {
  constexpr std::uint32_t k_but_set_id = 01777; // mkdir(2) inherits the set-group-id bit
  const auto store = system.entry({.path = parent_path(path), .follow = true});
  if (store.kind == sys::EntryKind::missing) {
    const auto above = system.entry({.path = store.ancestor, .follow = true});
    TRY(system.files().make_directories(store.path, above.mode & k_but_set_id));
  }
  return system.files().make_directories(path, 0755);
}

} // namespace

Result<void> pack_path(sys::System& system, const PathStagingRequest& request, const PackedPath& packed,
                       const plan::Say& say) {
  // The directories above `path` may keep out other users than those above the store, so the mode is set by the former.
  TRY_ASSIGN(const auto access, stage_access(system, request.path, request.how.copying.reader));
  TRY(make_store(system, request.store));
  if (is_few_large(packed.survey)) {
    TRY(write_list(system, request, packed, access, say));
    remove_older(system, request, packed);
    return {};
  }
  Generation what; // make_image() needs only these two fields
  what.files = packed.survey.files;
  what.bytes = packed.survey.bytes;
  const auto store = system.entry({.path = request.store, .follow = true});
  const tree::Packing image{.tree = {.path = request.path, .root = system.files().root()},
                            .file = image_path(join_path(store.resolved, k_unfinished + random_letters(12))),
                            .most = access.mode & 0444U,
                            .gid = access.gid};
  const ScratchTree guard(system, image.file, say); // deletes it if it does not get its name
  TRY_ASSIGN(auto note, make_image(system, image, what, "", say));
  TRY(check_unchanged(system, request, packed.survey, say));
  const auto there = probe_image(system, packed.image, 0);
  if (there.exists() && there.is_trusted(store.uid))
    return {}; // another node has made it meanwhile, and others may be copying it already
  TRY(publish_image(system, image.file, note, packed.image));
  remove_older(system, request, packed);
  return {};
}

} // namespace sharefs::conda
