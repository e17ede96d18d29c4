#include "sys/process/become.hpp"
#include "sys/process/child.hpp"
#include "sys/process/rights.hpp"
#include "sys/process/wire.hpp"
#include "sys/worker/worker.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sched.h>

namespace sharefs::sys {
namespace {

using namespace std::chrono_literals;

std::string identity_map(const std::vector<gid_t>& ids) {
  std::string map;
  for (const auto id : ids)
    map += fmt::format("{0} {0} 1\n", id);
  return map;
}

} // namespace

Result<Fd> make_user_namespace(const User& user) {
  std::vector<gid_t> groups{user.gid};
  for (const auto gid : user.groups)
    if (std::ranges::find(groups, gid) == groups.end())
      groups.push_back(gid);
  // The user owns the namespace, and root's capability makes it. The child keeps it until it is opened here.
  const auto make = [&user](int fd) {
    int error = become(user, 1U << CAP_SYS_ADMIN);
    if (error == 0 && ::unshare(CLONE_NEWUSER) != 0)
      error = errno;
    std::string end;
    if (write_all(fd, WireWriter().put(error).bytes()))
      read_all(fd, end);
  };
  TRY_ASSIGN(auto holder, WorkingChild::start(std::nullopt, make));
  holder.drain_until(deadline_in(10s), [&holder] { return holder.result().size() >= sizeof(int); });
  WireReader answer(holder.result());
  auto error = answer.get<int>();
  if (!answer.ok())
    error = EIO;
  const auto proc = fmt::format("/proc/{}/", holder.process().pid());
  Fd result;
  if (error == 0 && !map_ids(proc, identity_map({user.uid}), identity_map(groups)))
    error = errno;
  if (error == 0) {
    result.reset(::open((proc + "ns/user").c_str(), O_RDONLY | O_CLOEXEC));
    error = result ? 0 : errno;
  }
  holder.process().kill_and_reap();
  return error == 0 ? Result<Fd>(std::move(result)) : fail(errno_error(error, "cannot make a user namespace"));
}

} // namespace sharefs::sys
