#pragma once
// Private to plan: the fields of every action, once. Writing and reading JSON are two visitors of the same list, so
// that a new field cannot be forgotten in one of them.
#include "plan/action.hpp"

#include <array>
#include <string_view>
#include <type_traits>

namespace sharefs::plan {

/// The name of each alternative in JSON, in the order of the variant.
inline constexpr std::array<std::string_view, std::variant_size_v<Action>> k_kinds{
    "write_file", "remove_file", "make_directory", "remove_directory", "make_link",   "remove_link", "swap_link",
    "rename",     "set_access",  "mount",          "unmount",          "remove_tree", "run_tool"};

/// Calls `visit(name, field)` for each field, and `visit.mode(name, field)` for permission bits (octal in JSON).
template <class A, class Visitor> void visit_fields(A& a, Visitor&& visit) {
  using T = std::remove_const_t<A>;
  if constexpr (std::is_same_v<T, WriteFile>) {
    visit("path", a.path);
    visit("before", a.before);
    visit("after", a.after);
    visit.mode("mode", a.mode);
  } else if constexpr (std::is_same_v<T, RemoveFile>) {
    visit("path", a.path);
    visit("before", a.before);
    visit.mode("mode", a.mode);
  } else if constexpr (std::is_same_v<T, MakeDirectory> || std::is_same_v<T, RemoveDirectory>) {
    visit("path", a.path);
    visit.mode("mode", a.mode);
    visit("actor", a.actor);
  } else if constexpr (std::is_same_v<T, MakeLink> || std::is_same_v<T, RemoveLink>) {
    visit("path", a.path);
    visit("target", a.target);
    visit("actor", a.actor);
  } else if constexpr (std::is_same_v<T, SwapLink>) {
    visit("path", a.path);
    visit("before", a.before);
    visit("after", a.after);
    visit("actor", a.actor);
  } else if constexpr (std::is_same_v<T, Rename>) {
    visit("from", a.from);
    visit("to", a.to);
    visit("actor", a.actor);
  } else if constexpr (std::is_same_v<T, SetAccess>) {
    visit("path", a.path);
    visit("before", a.before);
    visit("after", a.after);
    visit("group", a.group);
    visit("device", a.device);
    visit("inode", a.inode);
  } else if constexpr (std::is_same_v<T, Access>) {
    visit("uid", a.uid);
    visit("gid", a.gid);
    visit.mode("mode", a.mode);
    visit("default_acl", a.default_acl);
  } else if constexpr (std::is_same_v<T, Mount>) {
    visit("source", a.source);
    visit("target", a.target);
    visit("fs_type", a.fs_type);
    visit("options", a.options);
    visit("deadline_ms", a.deadline);
  } else if constexpr (std::is_same_v<T, Unmount>) {
    visit("target", a.target);
    visit("force", a.force);
    visit("lazy", a.lazy);
    visit("source", a.source);
    visit("fs_type", a.fs_type);
    visit("options", a.options);
    visit("deadline_ms", a.deadline);
  } else if constexpr (std::is_same_v<T, RemoveTree>) {
    visit("path", a.path);
    visit("device", a.device);
    visit("inode", a.inode);
    visit("deadline_ms", a.deadline);
  } else if constexpr (std::is_same_v<T, RunTool>) {
    visit("argv", a.argv);
    visit("undo", a.undo);
    visit("harmless", a.harmless);
    visit("accept", a.accept);
    visit("deadline_ms", a.deadline);
  } else if constexpr (std::is_same_v<T, Actor>) {
    visit("user", a.user);
    visit("beneath", a.beneath);
  } else {
    static_assert(std::is_same_v<T, sys::User>, "every action names its fields here");
    visit("name", a.name);
    visit("uid", a.uid);
    visit("gid", a.gid);
    visit("groups", a.groups);
    visit("home", a.home);
  }
}

} // namespace sharefs::plan
