#pragma once
// The fields of the actions, and of the structs in them, for the journal and for `--json` (base/json_fields.hpp).
#include "base/fields.hpp"
#include "plan/action.hpp"

#include <array>
#include <string_view>

namespace sharefs::sys {

template <FieldsOf<CheckedProgram> P> auto fields(P& p) {
  return named("path", p.path, "", p.identity, "directory", p.directory, "directory_identity", p.directory_identity,
               "own_group", p.own_group);
}
/// `server` is left out, because it is only for messages.
template <FieldsOf<MountCall> M> auto fields(M& m) {
  return named("source", m.source, "target", m.target, "fs_type", m.fs_type, "options", m.options, "deadline_ms",
               m.deadline);
}
template <FieldsOf<UnmountCall> U> auto fields(U& u) {
  return named("source", u.source, "target", u.target, "fs_type", u.fs_type, "options", u.options, "force", u.force,
               "lazy", u.lazy, "deadline_ms", u.deadline);
}

} // namespace sharefs::sys

namespace sharefs::plan {

/// The name of each alternative in JSON, in the order of the variant.
inline constexpr std::array<std::string_view, std::variant_size_v<Action>> k_kinds{
    "file",  "directory", "link",    "rename",      "exchange_for_link", "set_access",   "set_immutable",
    "mount", "unmount",   "remount", "remove_tree", "set_tree_access",   "change_files", "run_tool"};

template <FieldsOf<Actor> A> auto fields(A& a) {
  return named("device", a.device, "inode", a.inode, "user", a.user, "beneath", a.beneath);
}
template <FieldsOf<File> F> auto fields(F& f) {
  return named("path", f.path, "before", f.before, "after", f.after, "mode", f.mode, "actor", f.actor);
}
template <FieldsOf<Directory> D> auto fields(D& d) {
  return named("path", d.path, "mode_before", d.before, "mode_after", d.after, "parent", d.parent, "actor", d.actor,
               "guarded", d.guarded, "access", d.access);
}
template <FieldsOf<Link> L> auto fields(L& l) {
  return named("path", l.path, "before", l.before, "after", l.after, "", l.identity, "actor", l.actor, "checked",
               l.checked);
}
template <FieldsOf<Rename> R> auto fields(R& r) {
  return named("from", r.from, "to", r.to, "actor", r.actor);
}
template <FieldsOf<ExchangeForLink> E> auto fields(E& e) {
  return named("path", e.path, "to", e.to, "target", e.target, "device", e.device, "inode", e.inode, "reverse",
               e.reverse, "actor", e.actor);
}
template <FieldsOf<SetAccess> S> auto fields(S& s) {
  return named("path", s.path, "before", s.before, "after", s.after, "group", s.group, "", s.identity, "actor",
               s.actor);
}
template <FieldsOf<SetImmutable> S> auto fields(S& s) {
  return named("path", s.path, "immutable", s.immutable, "device", s.device, "inode", s.inode);
}
template <FieldsOf<Remount> R> auto fields(R& r) {
  return named("target", r.target, "before", r.before, "after", r.after, "deadline_ms", r.deadline);
}
template <FieldsOf<RemoveTree> R> auto fields(R& r) {
  return named("path", r.path, "device", r.device, "inode", r.inode, "actor", r.actor, "guarded", r.guarded,
               "deadline_ms", r.deadline, "aside", r.aside);
}
template <FieldsOf<SetTreeAccess> S> auto fields(S& s) {
  return named("path", s.path, "gid", s.gid, "mode", s.mode, "group", s.group, "device", s.device, "inode", s.inode,
               "deadline_ms", s.deadline);
}
template <FieldsOf<FileChange> C> auto fields(C& c) {
  return named("path", c.path, "before", c.before, "after", c.after, "edits", c.edits, "mode_before", c.mode_before,
               "mode_after", c.mode_after, "removed", c.removed, "", c.identity, "round", c.round);
}
template <FieldsOf<ChangeFiles> C> auto fields(C& c) {
  return named("path", c.path, "changes", c.changes, "device", c.device, "inode", c.inode, "deadline_ms", c.deadline);
}
template <FieldsOf<RunTool> R> auto fields(R& r) {
  return named("argv", r.argv, "undo", r.undo, "silent", r.silent, "harmless", r.harmless, "accept", r.accept, "actor",
               r.actor, "program", r.program, "deadline_ms", r.deadline);
}

} // namespace sharefs::plan
