// describe(), diff() and touched_paths() of plan/action.hpp.
#include "base/text.hpp"
#include "plan/action.hpp"
#include "plan/unified_diff.hpp"

#include <fmt/format.h>

namespace sharefs::plan {

namespace {

std::string as_user(const std::optional<Actor>& actor) {
  return actor && !actor->user.name.empty() ? " as " + actor->user.name : "";
}

/// Returns "root:ml 2770, group-writable": owner, group and mode, and in words what others than the owner may do.
std::string access_text(const Access& access, const std::string& group) {
  const auto name = [](std::uint32_t id) { return id == 0 ? std::string("root") : std::to_string(id); };
  const auto rights = [&](std::uint32_t bits) {
    return (bits & 2U) != 0 ? "writable" : (bits & 4U) != 0 ? "readable" : "";
  };
  std::string text =
      fmt::format("{}:{} {}", name(access.uid), group.empty() ? name(access.gid) : group, format_mode(access.mode));
  if (const std::string word = rights(access.mode); !word.empty())
    return text + ", " + word + " by everyone";
  const bool sticky = (access.mode & 01000U) != 0;
  if (const std::string word = rights(access.mode >> 3U); !word.empty())
    return text + ", group-" + word + (sticky && word == "writable" ? ", each deletes only their own" : "");
  return text;
}

/// Returns one line per action. Paths are quoted as for a shell, so that no control character reaches a terminal.
struct Describer {
  std::string operator()(const File& a) const {
    return (a.after ? "write " : "remove ") + shell_quote(a.path) + as_user(a.actor);
  }
  std::string operator()(const Directory& a) const {
    return (a.after ? "make directory " : "remove directory ") + shell_quote(a.path) + as_user(a.actor);
  }
  std::string operator()(const Link& a) const {
    if (a.before && a.after)
      return fmt::format("point link {} to {} instead of {}{}", shell_quote(a.path), shell_quote(*a.after),
                         shell_quote(*a.before), as_user(a.actor));
    return fmt::format("{} {} -> {}{}", a.after ? "link" : "remove link", shell_quote(a.path),
                       shell_quote(a.after ? *a.after : a.before.value_or("")), as_user(a.actor));
  }
  std::string operator()(const Rename& a) const {
    return fmt::format("rename {} to {}{}", shell_quote(a.from), shell_quote(a.to), as_user(a.actor));
  }
  std::string operator()(const ExchangeForLink& a) const {
    return a.reverse ? fmt::format("put {} back in place of the link {}{}", shell_quote(a.to), shell_quote(a.path),
                                   as_user(a.actor))
                     : fmt::format("replace {} by a link to {}, keep it as {}{}", shell_quote(a.path),
                                   shell_quote(a.target), shell_quote(a.to), as_user(a.actor));
  }
  std::string operator()(const SetAccess& a) const {
    return fmt::format("set access of {}: {}", shell_quote(a.path), access_text(a.after, a.group.value_or("")));
  }
  std::string operator()(const SetImmutable& a) const {
    return (a.immutable ? "forbid writing in " : "allow writing in ") + shell_quote(a.path);
  }
  std::string operator()(const Mount& a) const {
    return fmt::format("{} {} {} {}", a.fs_type == sys::k_bind ? "bind" : "mount", shell_quote(a.source),
                       a.fs_type == sys::k_bind ? "to" : "on", shell_quote(a.target));
  }
  std::string operator()(const Unmount& a) const {
    const char* how = a.force && a.lazy ? " (force, lazy)" : a.force ? " (force)" : a.lazy ? " (lazy)" : "";
    return "unmount " + shell_quote(a.target) + how;
  }
  std::string operator()(const Remount& a) const {
    return fmt::format("remount {} with {}", shell_quote(a.target), a.after.empty() ? "rw" : a.after);
  }
  std::string operator()(const RemoveTree& a) const {
    return "delete " + shell_quote(a.path) + " with all in it" + as_user(a.actor);
  }
  std::string operator()(const SetTreeAccess& a) const {
    return fmt::format("give what lies below {} to {}", shell_quote(a.path), a.group);
  }
  std::string operator()(const ChangeFiles& a) const {
    std::size_t edited = 0, removed = 0;
    for (const auto& change : a.changes)
      ++(change.removed ? removed : edited);
    std::vector<std::string> parts;
    if (edited > 0)
      parts.push_back("change " + count_of(edited, "file"));
    if (removed > 0)
      parts.push_back("delete " + count_of(removed, "file"));
    return fmt::format("{} in {}", join(parts, " and "), shell_quote(a.path));
  }
  std::string operator()(const RunTool& a) const { return "run `" + shell_join(a.argv) + "`" + as_user(a.actor); }
};

} // namespace

std::string describe(const Action& action) {
  return std::visit(Describer{}, action);
}

std::string diff(const Action& action) {
  if (const auto* file = std::get_if<File>(&action))
    return unified_diff(file->path, file->before, file->after);
  return {};
}

std::vector<std::string> touched_paths(const Action& action) {
  return std::visit(
      [](const auto& a) -> std::vector<std::string> {
        if constexpr (requires {
                        a.path;
                        a.to;
                      })
          return {a.path, a.to};
        else if constexpr (requires { a.path; })
          return {a.path};
        else if constexpr (requires { a.from; })
          return {a.from, a.to};
        else if constexpr (requires { a.target; })
          return {a.target};
        else
          return {};
      },
      action);
}

} // namespace sharefs::plan
