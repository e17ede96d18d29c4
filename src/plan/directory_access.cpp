#include "plan/directory_access.hpp"

#include "base/try.hpp"
#include "plan/actor_root.hpp"
#include "plan/perform.hpp"
#include "sys/process/call.hpp"
#include "tree/acl.hpp"

#include <cerrno>
#include <fmt/format.h>

namespace sharefs::plan {

template <FieldsOf<FoundAccess> F> auto fields(F& found) {
  return named("access", found.access, "acls", found.acls);
}

Access access_after(const DirectoryAccess& wanted, const Access& before) {
  Access after = before;
  if (wanted.kind == DirectoryAccess::Kind::open)
    after.mode = 01777;
  if (wanted.kind == DirectoryAccess::Kind::group) {
    after.gid = wanted.gid;
    after.mode = wanted.mode;
    after.default_acl = tree::default_acl(wanted.mode);
  }
  return after;
}

void add_access(Plan& plan, const std::string& group, const std::string& directory, const DirectoryAccess& wanted,
                SetAccess change) {
  constexpr std::uint32_t k_sticky = 01000, k_group_writes = 020, k_others_read = 04, k_others_write = 02;
  const auto after = change.after;
  const bool shared = wanted.kind == DirectoryAccess::Kind::group;
  if (shared)
    change.group = wanted.group;
  plan.add(group,
           shared ? fmt::format("members of `{}` share it", wanted.group)
                  : "everyone may use it, as in the manual recipe",
           std::move(change));
  if (shared && (after.mode & (k_sticky | k_group_writes)) == k_group_writes)
    plan.notes.push_back(
        fmt::format("{}: every member of `{}` may delete and replace what another has made in it, whole "
                    "environments too; `access: {{group: {}, sticky: true}}` leaves what lies "
                    "directly in it to its owner",
                    directory, wanted.group, wanted.group));
  if ((after.mode & (k_others_read | k_others_write)) != 0)
    plan.notes.push_back(
        fmt::format("{}: {}{}", directory,
                    (after.mode & k_others_write) != 0 ? "writable by everyone on every node"
                                                       : "readable by everyone on every node",
                    after.default_acl.empty() ? "" : ", and so is every file made in it, whatever the umask"));
}

Result<FoundAccess> read_access(sys::System& system, const std::string& directory, bool guarded,
                                std::chrono::milliseconds deadline) {
  const auto look = [&]() -> Result<FoundAccess> {
    TRY_ASSIGN(const auto base, ActorRoot::enter(system.files().root(), std::nullopt));
    TRY_ASSIGN(const auto walked, base.find(directory, guarded));
    if (!walked.exists())
      return fail(errno_error(ENOENT, directory));
    TRY_ASSIGN(auto access, tree::read_access(walked.fd.get(), walked.status, directory));
    return FoundAccess{std::move(access), walked.is_directory() && tree::supports_default_acls(walked.fd.get())};
  };
  return sys::call(std::nullopt, deadline, look);
}

} // namespace sharefs::plan
