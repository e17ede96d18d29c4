#include "plan/action.hpp"

namespace sharefs::plan {

namespace {

/// Returns the actor for an undo, without the device: a file system that was mounted again may have another device
/// number.
std::optional<Actor> without_device(std::optional<Actor> actor) {
  if (actor)
    actor->device = 0;
  return actor;
}

struct Inverter {
  using Inverse = std::optional<Action>;

  Inverse operator()(const File& a) const { return File{a.path, a.after, a.before, a.mode, without_device(a.actor)}; }
  Inverse operator()(const Directory& a) const {
    return Directory{a.path, a.after, a.before, without_device(a.actor), false, {}, a.access};
  }
  Inverse operator()(const Link& a) const {
    return Link{a.path, a.after, a.before, without_device(a.actor), a.checked, a.identity.owner_only()};
  }
  Inverse operator()(const Rename& a) const { return Rename{a.to, a.from, a.actor}; }
  Inverse operator()(const ExchangeForLink& a) const {
    return ExchangeForLink{a.path, a.to, a.target, !a.reverse, 0, a.inode, without_device(a.actor)};
  }
  Inverse operator()(const SetAccess& a) const {
    // Without a `before` an earlier step makes the directory, and the inverse of that step removes it. So the inverse
    // of this action has nothing to do, which is not the same as "cannot be undone".
    return SetAccess{a.path, a.after, a.before.value_or(a.after), std::nullopt, {}, without_device(a.actor)};
  }
  Inverse operator()(const SetImmutable& a) const { return SetImmutable{a.path, !a.immutable, a.device, a.inode}; }
  Inverse operator()(const Mount& a) const { return unmount_of(a); }
  Inverse operator()(const Unmount& a) const {
    if (a.source.empty() || a.fs_type.empty())
      return std::nullopt;
    return Mount{a.source, a.target, a.fs_type, a.options};
  }
  Inverse operator()(const Remount& a) const { return Remount{a.target, a.after, a.before, a.deadline}; }
  Inverse operator()(const RemoveTree&) const { return std::nullopt; }
  Inverse operator()(const SetTreeAccess&) const { return std::nullopt; }
  Inverse operator()(const ChangeFiles& a) const {
    ChangeFiles inverse = a;
    inverse.device = 0; // a file system that was mounted again may have another device number
    for (auto& change : inverse.changes) {
      if (change.removed)
        return std::nullopt;
      std::swap(change.before, change.after);
      std::swap(change.mode_before, change.mode_after);
      change.edits = invert_edits(change.edits);
      change.round = change.round == 1 ? 0 : change.round;                  // the inverse is known without it
      const auto inode = change.before.empty() ? change.identity.inode : 0; // a new content is a new inode
      change.identity = change.identity.owner_only();
      change.identity.inode = inode;
    }
    return inverse;
  }
  Inverse operator()(const RunTool& a) const {
    if (!a.harmless && a.undo.empty())
      return std::nullopt;
    RunTool inverse = a;
    if (inverse.program)
      inverse.program->directory_identity.device = inverse.program->identity.device = 0;
    if (!a.harmless)
      std::swap(inverse.argv, inverse.undo);
    return inverse;
  }
};

} // namespace

File remove_file(std::string path, std::string before, std::uint32_t mode, std::optional<Actor> actor) {
  return {std::move(path), std::move(before), std::nullopt, mode, std::move(actor)};
}

Directory make_directory(std::string path, std::uint32_t mode, std::optional<Actor> actor, bool guarded,
                         sys::FileIdentity parent) {
  return {std::move(path), std::nullopt, mode, std::move(actor), guarded, parent};
}

Directory remove_directory(std::string path, std::uint32_t mode, std::optional<Actor> actor) {
  return {std::move(path), mode, std::nullopt, std::move(actor)};
}

Link make_link(std::string path, std::string target, std::optional<Actor> actor) {
  return {std::move(path), std::nullopt, std::move(target), std::move(actor)};
}

Link remove_link(std::string path, std::string target, std::optional<Actor> actor) {
  return {std::move(path), std::move(target), std::nullopt, std::move(actor)};
}

Unmount unmount_of(const Mount& mount) {
  return {.target = mount.target, .source = mount.source, .fs_type = mount.fs_type, .options = mount.options};
}

std::optional<Action> invert(const Action& action) {
  return std::visit(Inverter{}, action);
}

bool deletes(const Action& action) {
  return std::holds_alternative<RemoveTree>(action);
}

bool is_harmless(const Action& action) {
  const auto* tool = std::get_if<RunTool>(&action);
  return tool != nullptr && tool->harmless;
}

} // namespace sharefs::plan
