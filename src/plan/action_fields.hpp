#pragma once
// Private to plan: the fields of every action, once. Writing and reading JSON are two visitors of the same list, so
// that a new field cannot be forgotten in one of them.
#include "plan/action.hpp"

#include <array>
#include <string_view>

namespace sharefs::plan {

/// The name of each alternative in JSON, in the order of the variant.
inline constexpr std::array<std::string_view, std::variant_size_v<Action>> k_kinds{
    "file",  "directory", "link",    "rename",      "exchange_for_link", "set_access",   "set_immutable",
    "mount", "unmount",   "remount", "remove_tree", "set_tree_access",   "change_files", "run_tool"};

/// Calls `visit(name, field)` for each field, and `visit.mode(name, field)` for permission bits (octal in JSON): of the
/// actions, and of the structs in them (Actor, sys::User, Access, FileChange, Edit, sys::CheckedProgram). A name means
/// the same in all of them. The fields of an `identity` stand among those of what it is of.
template <class A, class Visitor> void visit_fields(A& a, Visitor&& visit) {
  if constexpr (requires { a.name; })
    visit("name", a.name);
  if constexpr (requires { a.path; })
    visit("path", a.path);
  if constexpr (requires { a.from; })
    visit("from", a.from);
  if constexpr (requires { a.to; })
    visit("to", a.to);
  if constexpr (requires { a.source; })
    visit("source", a.source);
  if constexpr (requires { a.target; })
    visit("target", a.target);
  if constexpr (requires { a.fs_type; })
    visit("fs_type", a.fs_type);
  if constexpr (requires { a.options; })
    visit("options", a.options);
  if constexpr (requires { a.force; })
    visit("force", a.force);
  if constexpr (requires { a.lazy; })
    visit("lazy", a.lazy);
  if constexpr (requires { a.uid; })
    visit("uid", a.uid);
  if constexpr (requires { a.gid; })
    visit("gid", a.gid);
  if constexpr (requires { a.groups; })
    visit("groups", a.groups);
  if constexpr (requires { a.home; })
    visit("home", a.home);
  if constexpr (std::is_same_v<std::remove_const_t<A>, Directory>) {
    visit.mode("before", a.before);
    visit.mode("after", a.after);
  } else if constexpr (requires { a.before; }) {
    visit("before", a.before);
    visit("after", a.after);
  }
  if constexpr (requires { a.offset; })
    visit("offset", a.offset);
  if constexpr (requires { a.edits; })
    visit("edits", a.edits);
  if constexpr (requires { a.mode_before; })
    visit("mode_before", a.mode_before);
  if constexpr (requires { a.mode_after; })
    visit("mode_after", a.mode_after);
  if constexpr (requires { a.removed; })
    visit("removed", a.removed);
  if constexpr (requires { a.changes; })
    visit("changes", a.changes);
  if constexpr (requires { a.mode; })
    visit.mode("mode", a.mode);
  if constexpr (requires { a.default_acl; })
    visit("default_acl", a.default_acl);
  if constexpr (requires { a.group; })
    visit("group", a.group);
  if constexpr (requires { a.immutable; })
    visit("immutable", a.immutable);
  if constexpr (requires { a.identity; })
    visit_fields(a.identity, visit);
  if constexpr (requires { a.parent; })
    visit("parent", a.parent);
  if constexpr (requires { a.directory; })
    visit("directory", a.directory);
  if constexpr (requires { a.directory_identity; })
    visit("directory_identity", a.directory_identity);
  if constexpr (requires { a.device; })
    visit("device", a.device);
  if constexpr (requires { a.inode; })
    visit("inode", a.inode);
  if constexpr (requires { a.kind; })
    visit("file_kind", a.kind);
  if constexpr (requires { a.changed; })
    visit("changed", a.changed);
  if constexpr (requires { a.own_group; })
    visit("own_group", a.own_group);
  if constexpr (requires { a.reverse; })
    visit("reverse", a.reverse);
  if constexpr (requires { a.argv; })
    visit("argv", a.argv);
  if constexpr (requires { a.undo; })
    visit("undo", a.undo);
  if constexpr (requires { a.silent; })
    visit("silent", a.silent);
  if constexpr (requires { a.harmless; })
    visit("harmless", a.harmless);
  if constexpr (requires { a.accept; })
    visit("accept", a.accept);
  if constexpr (requires { a.user; })
    visit("user", a.user);
  if constexpr (requires { a.beneath; })
    visit("beneath", a.beneath);
  if constexpr (requires { a.actor; })
    visit("actor", a.actor);
  if constexpr (requires { a.program; })
    visit("program", a.program);
  if constexpr (requires { a.guarded; })
    visit("guarded", a.guarded);
  if constexpr (requires { a.checked; })
    visit("checked", a.checked);
  if constexpr (requires { a.deadline; })
    visit("deadline_ms", a.deadline);
}

} // namespace sharefs::plan
