#include "sys/process/become.hpp"
#include "sys/process/child.hpp"
#include "sys/process/rights.hpp"
#include "sys/worker/worker.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <cerrno>
#include <fmt/format.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

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
  Pipe made, done;
  if (!made.open() || !done.open())
    return fail(errno_error(errno, "cannot make a user namespace"));
  TRY_ASSIGN(auto holder, Child::fork([&] {
               made.read.reset();
               done.write.reset();
               int error = become(user, 1U << CAP_SYS_ADMIN); // the user owns the namespace, root's capability makes it
               if (error == 0 && ::unshare(CLONE_NEWUSER) != 0)
                 error = errno;
               char end = 0;
               if (write_all(made.write.get(), {reinterpret_cast<const char*>(&error),
                                                sizeof error})) // NOLINT: the reader is this program
                   [[maybe_unused]]
                 const auto ended = ::read(done.read.get(), &end, 1);
               ::_exit(0);
             }));
  made.write.reset();
  int error = EIO;
  if (pollfd answer{made.read.get(), POLLIN, 0}; ::poll(&answer, 1, poll_time(deadline_in(10s))) > 0) [[maybe_unused]]
    const auto count = ::read(made.read.get(), &error, sizeof error);
  const auto proc = fmt::format("/proc/{}/", holder.pid());
  Fd result;
  if (error == 0 && !map_ids(proc, identity_map({user.uid}), identity_map(groups)))
    error = errno;
  if (error == 0) {
    result.reset(::open((proc + "ns/user").c_str(), O_RDONLY | O_CLOEXEC));
    error = result ? 0 : errno;
  }
  done.write.reset();
  if (!holder.reap_until(deadline_in(k_end_grace)))
    holder.kill_and_reap();
  return error == 0 ? Result<Fd>(std::move(result)) : fail(errno_error(error, "cannot make a user namespace"));
}

} // namespace sharefs::sys
