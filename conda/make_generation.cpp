#include "conda/make_generation.hpp"

#include "base/path.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "conda/share.hpp"
#include "conda/staged.hpp"
#include "conda/verified.hpp"
#include "plan/apply.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

namespace sharefs::conda {

namespace {

/// Completes the record of a generation whose tree is filled.
Result<void> complete_record(sys::System& system, NewGeneration& made) {
  auto& record = made.record;
  TRY_ASSIGN(auto contents, read_contents(system, made.tree.path));
  record.python = std::move(contents.python);
  record.packages = std::move(contents.packages);
  if (record.files == 0) {
    TRY_ASSIGN(const auto size, tree::measure(made.tree, {}));
    record.files = size.files;
    record.bytes = size.bytes;
  }
  record.own_bytes = std::min(record.own_bytes, record.bytes);
  const auto self = system.identity();
  record.user = self.user;
  record.host = self.hostname;
  record.created = std::chrono::system_clock::to_time_t(system.now());
  record.parent = made.environment.current;
  record.prefix = made.environment.path();
  return {};
}

/// Returns the path of a copy of the present generation on this host's own disk, staged by root or by this process's
/// user; empty if there is none.
std::string staged_tree(sys::System& system, const std::string& stage, const SharedEnvironment& environment) {
  const auto path = environment.path(environment.current);
  const auto source = in_generation(system.entry({.path = path, .follow = true}).resolved);
  const auto uid = static_cast<unsigned>(system.identity().uid);
  const auto staged = source ? find_staged(system, stage, uid, *source) : std::nullopt;
  return staged ? staged->tree.path : "";
}

/// Makes the image beside the generation. Only an interrupt is an error, because the image can be made later.
Result<void> add_image(sys::System& system, const GenerationRequest& making, NewGeneration& made,
                       const plan::Say& say) {
  if (!making.settings.makes_image)
    return {};
  const auto& environment = made.environment;
  tree::Packing packing{.tree = made.tree, .file = made.hidden_image(), .near = making.near};
  if (making.near.empty() && environment.current != 0) {
    packing.near = staged_tree(system, making.settings.stage, environment);
    packing.near_of = environment.path(environment.current);
  }
  made.image_guard = std::make_unique<ScratchTree>(system, packing.file, say);
  const auto cleared = clear_place(system, packing.file); // a killed run may have left a part of it
  auto note = cleared ? make_image(system, packing, made.record, environment.name, say) : fail(cleared.error());
  if (note) {
    made.image = std::move(*note);
    return {};
  }
  if (note.error().code == ErrorCode::interrupted)
    return fail(note.error());
  say.message(fmt::format("it gets no image: {}; `sharefs conda image {}` makes one later", note.error().message,
                          shell_quote(environment.name)));
  return {};
}

/// True if a compiled file is stale only because it names the old place, for tracebacks.
bool names_old_place_only(const EnvironmentState& state, const std::string& path) {
  if (std::ranges::find(state.contents, source_of(path), &plan::FileChange::path) != state.contents.end())
    return false; // its source changes, too
  return std::ranges::any_of(state.found, [&](const Found& found) {
    return found.kind == Kind::stale_pyc && found.path == path && found.detail.starts_with('/');
  });
}

/// Checks before the work, and not after it, that this user may point STORE/ENV to another generation.
Result<void> check_switch(sys::System& system, const SharedEnvironment& environment) {
  constexpr std::uint32_t k_sticky = 01000;
  if (environment.current == 0)
    return {};
  const auto found = system.entries(
      {.queries = {{.path = environment.store, .follow = true, .access = true}, {.path = environment.path()}}});
  const auto &store = found[0], &link = found[1];
  if (store.kind != sys::EntryKind::directory)
    return fail(store.error());
  const auto uid = system.identity().uid;
  const bool is_of_others = (store.mode & k_sticky) != 0 && uid != 0 && uid != store.uid && uid != link.uid;
  if (store.writable && !is_of_others)
    return {};
  return fail(ErrorCode::permission,
              fmt::format("{} cannot be pointed to a new generation: {} ", link.path, store.path) +
                  (is_of_others ? "has the sticky bit, and the link is another user's"
                                : fmt::format("has mode {}", format_mode(store.mode))),
              fmt::format("run it as `{}` or root", user_name(system, is_of_others ? link.uid : store.uid)));
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

std::string NewGeneration::path() const {
  return join_path(environment.root.path, hidden);
}

std::string hidden_name(unsigned number) {
  return fmt::format("new-{}.{}", generation_name(number), random_letters(6));
}

std::string NewGeneration::hidden_image() const {
  return image_path(path());
}

Result<NewGeneration> hold(sys::System& system, const SharedEnvironment& planned, const sys::LeaseRequest& request,
                           const plan::Say& say, bool any) {
  TRY_ASSIGN(auto lease, take_lease(system, planned, request, say));
  NewGeneration held;
  held.lease.emplace(std::move(lease));
  TRY_ASSIGN(held.environment, any ? find_shared(system, planned.store, planned.name)
                                   : probe_environment(system, planned.store, planned.name));
  if (!any && (held.environment.current != planned.current || held.environment.next() != planned.next()))
    return fail(ErrorCode::conflict, fmt::format("somebody else has changed `{}` meanwhile", planned.name),
                "run the command again");
  return held;
}

Result<NewGeneration> make_generation(sys::System& system, const GenerationRequest& making, const plan::Say& say) {
  TRY_ASSIGN(auto made, hold(system, making.environment, making.settings.lease, say, making.hidden.empty()));
  TRY(check_switch(system, made.environment));
  made.record = making.record;
  made.record.number = made.environment.next();
  if (made.record.number > k_last_generation)
    return fail(ErrorCode::unsupported, fmt::format("there are {} generations: no more numbers", k_last_generation));
  made.hidden = making.hidden.empty() ? hidden_name(made.record.number) : making.hidden;
  if (!making.resumes) {
    remove_unfinished(system, made.environment, say);
    made.guard = std::make_unique<ScratchTree>(system, made.path(), say);
  }
  TRY(making.fill(made));
  TRY(complete_record(system, made));
  TRY(add_image(system, making, made, say));
  return made;
}

Result<void> publish(sys::System& system, NewGeneration& made) {
  TRY(made.lease->check());
  const auto& files = system.files();
  const auto& [environment, record] = std::tie(made.environment, made.record);
  const auto path = environment.path(record.number);
  TRY_ASSIGN(const auto cut_off, files.read_if_exists(path + ".json")); // a text comes from an interrupted command
  TRY(files.write_if(path + ".json", cut_off, format_generation(record)));
  if (made.image)
    TRY(publish_image(system, made.hidden_image(), *made.image, path));
  return {};
}

void note_sound(sys::System& system, const NewGeneration& made) {
  if (!made.sound)
    return;
  const auto now = probe_environment(system, made.environment.store, made.environment.name);
  if (now && now->current == made.record.number)
    note_verified(system, *now, made.record, *made.sound);
}

Result<ImagePlan> plan_image(sys::System& system, const std::string& store, const std::string& name,
                             const plan::Say& say) {
  TRY_ASSIGN(auto environment, find_shared(system, store, name));
  ImagePlan imaging{.environment = std::move(environment), .file = {}, .plan = {}};
  const auto& now = imaging.environment;
  TRY_ASSIGN(const auto* one, find_current(now));
  const auto path = now.path(now.current);
  const auto why = reason_to_remake(system, now, probe_image(system, path, one->record->created), say);
  if (!why || why->empty())
    return why ? Result<ImagePlan>(std::move(imaging)) : fail(why.error());
  imaging.file = image_path(join_path(now.root.path, hidden_name(now.current)));
  if (one->image.kind == sys::EntryKind::file)
    imaging.plan.add(name, *why, removal_of(one->image));
  imaging.plan.add(name, fmt::format("generation {} in one file, which is made first", now.current),
                   plan::Rename{imaging.file, image_path(path), std::nullopt});
  return imaging;
}

Result<NewGeneration> make_missing_image(sys::System& system, const ImagePlan& imaging, const sys::LeaseRequest& lease,
                                         const plan::Say& say) {
  TRY_ASSIGN(auto held, hold(system, imaging.environment, lease, say));
  const auto& now = held.environment;
  TRY_ASSIGN(const auto* one, find_current(now));
  const auto& record = *one->record;
  auto there = probe_image(system, now.path(now.current), record.created);
  TRY_ASSIGN(const auto why, reason_to_remake(system, now, there, say));
  if (why.empty()) { // another command has made it while this one waited for the lease
    held.image = std::move(there.note);
    return held;
  }
  if (one->image.kind != sys::EntryKind::file)
    TRY(clear_place(system, there.path));
  tree::Packing image{.tree = {.path = now.path(now.current), .root = system.files().root()}, .file = imaging.file};
  image.tree.device = one->entry.device;
  image.tree.inode = one->entry.inode;
  held.image_guard = std::make_unique<ScratchTree>(system, image.file, say);
  TRY_ASSIGN(held.image, make_image(system, image, record, now.name, say));
  TRY(write_image_note(system, *held.image, image.tree.path));
  TRY(held.lease->check());
  return held;
}

Result<void> repair_copy(sys::System& system, const CopyToRepair& copy, const plan::Say& say) {
  const auto& path = copy.tree.path;
  const EnvironmentRequest request{.path = path, .prefix = copy.prefix, .from = copy.from, .mixed = true};
  TRY_ASSIGN(auto state, probe(system, request, say.progress("reading " + path)));
  if (state.device != copy.tree.device || state.inode != copy.tree.inode)
    return fail(ErrorCode::conflict, path + " is not the copy that was made: somebody else has put it there",
                "see who writes in the store, then run the command again");
  const bool runs_programs = copy.runs_programs && !state.others_write;
  state.uncompiled = copy.uncompiled;
  if (!runs_programs) // such files stay, because nothing would compile them again
    std::erase_if(state.compiled,
                  [&](const plan::FileChange& change) { return names_old_place_only(state, change.path); });
  for (const auto& step : plan_repair(state, false, runs_programs).steps) {
    const auto done = plan::apply_action(step.action, system);
    if (!done && !std::holds_alternative<plan::RunTool>(step.action))
      return fail(done.error());
    if (!done)
      say.warning("not all of Python could be compiled again: " + done.error().message, "");
  }
  if (copy.in_part)
    return {};
  auto left = diagnose_unrepaired(state);
  std::erase_if(left, [](const Diagnosis& one) {
    return one.severity != Severity::error || one.code == "SF501" || one.code == "SF502" || // faults of the original
           one.code == "SF510"; // close_tree() opens these paths later
  });
  say.report(left);
  return left.empty() ? Result<void>{} : fail(ErrorCode::failed, "the copy is not sound", "nothing was changed");
}

Result<void> close_tree(const tree::Place& tree, const sys::Entry& store, bool protect, const EnvironmentState* of) {
  constexpr mode_t k_set_group = 02000;
  tree::Modes modes;
  modes.mode = generation_mode(store.mode, protect);
  if ((store.mode & k_set_group) != 0)
    modes.gid = store.gid;
  tree::Options options;
  if (of != nullptr)
    options.admit = admit_opened(*of, modes.mode);
  return tree::set_modes(tree, modes, options).map([](std::uint64_t) {});
}

} // namespace sharefs::conda
