#include "plan/host_lock.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "plan/apply.hpp"
#include "plan/json_values.hpp"
#include "plan/private_directory.hpp"
#include "sys/process/child.hpp"

#include <array>
#include <cerrno>
#include <ctime>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace sharefs::plan {

namespace {

// Why flock(2) and not fcntl(2) locks: those belong to the process and vanish when any descriptor of the file is closed
// anywhere in it. A flock belongs to the open file, which a forked child shares; but every child of sharefs closes all
// its descriptors first thing, or at execve(2) (O_CLOEXEC), and the destructor unlocks explicitly, so that even a child
// which the kernel holds does not keep the lock.

constexpr std::chrono::milliseconds k_poll{50};
constexpr std::size_t k_holder_limit = 65536;

/// Local time, because the person compares it with a clock: "12:00:03", with the date if it is not today's.
std::string clock_text(std::int64_t seconds) {
  const auto then = static_cast<std::time_t>(seconds);
  const auto now = std::time(nullptr);
  std::tm then_fields{};
  std::tm now_fields{};
  ::localtime_r(&then, &then_fields);
  ::localtime_r(&now, &now_fields);
  const bool today = then_fields.tm_year == now_fields.tm_year && then_fields.tm_yday == now_fields.tm_yday;
  std::array<char, 64> text{};
  return {text.data(), std::strftime(text.data(), text.size(), today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &then_fields)};
}

/// "another sharefs (`sharefs mount --all`, pid 4711) has been at work since 12:00:03"
std::string holder_text(int descriptor, const std::string& user) {
  std::string content(k_holder_limit, '\0');
  const auto size = ::pread(descriptor, content.data(), content.size(), 0);
  content.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  const auto json = parse_json(content);
  const auto has = [&json](const char* name) { return json && json->is_object() && json->contains(name); };
  if (!has("command") || !has("pid") || !has("user") || !has("since") || !(*json)["pid"].is_number_integer() ||
      !(*json)["since"].is_number_integer())
    return "another sharefs is at work"; // it holds the lock, but has not yet written who it is
  auto text = "another sharefs (`" + to_utf8(bytes_from_json((*json)["command"]).value_or("?")) + "`, pid " +
              std::to_string((*json)["pid"].get<int>());
  if (const auto theirs = bytes_from_json((*json)["user"]).value_or(""); !theirs.empty() && theirs != user)
    text += ", user " + to_utf8(theirs);
  return text + ") has been at work since " + clock_text((*json)["since"].get<std::int64_t>());
}

void name_holder(int descriptor, const LockHolder& self) {
  const Json holder{{"pid", ::getpid()},
                    {"command", bytes_to_json(self.command)},
                    {"user", bytes_to_json(self.user)},
                    {"since", static_cast<std::int64_t>(std::time(nullptr))}};
  // For messages of others only: if it cannot be written (a full disk), they say less.
  if (::ftruncate(descriptor, 0) == 0)
    sys::write_all(descriptor, dump_line(holder) + "\n");
}

} // namespace

Result<HostLock> HostLock::acquire(const sys::Files& files, const std::string& state_directory, const LockHolder& self,
                                   std::chrono::milliseconds wait,
                                   const std::function<void(const std::string&)>& on_wait, const std::string& name) {
  const auto state = PrivateDirectory::make(files, state_directory);
  auto file = state ? state->open_file(name, O_RDWR | O_CREAT | O_APPEND) : fail(state.error());
  if (!file)
    return fail(file.error());
  const auto deadline = sys::deadline_in(wait);
  for (bool reported = false; ::flock(file->get(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno == EINTR)
      continue;
    if (errno != EWOULDBLOCK)
      return fail(errno_error(errno, join_path(state_directory, name)));
    const auto holder = holder_text(file->get(), self.user);
    if (interrupted())
      return fail(ErrorCode::interrupted, "interrupted while waiting: " + holder);
    if (sys::Clock::now() >= deadline)
      return fail(ErrorCode::busy, holder, "wait for its end, or wait longer with `--wait SECONDS`");
    if (!reported && on_wait)
      on_wait(holder);
    reported = true;
    std::this_thread::sleep_for(std::min<sys::Clock::duration>(k_poll, deadline - sys::Clock::now()));
  }
  name_holder(file->get(), self);
  return HostLock(std::move(*file));
}

HostLock::~HostLock() {
  if (!m_file)
    return;
  // Nobody shall read our name while the next one has the lock but has not yet written his.
  [[maybe_unused]] const int emptied = ::ftruncate(m_file.get(), 0);
  ::flock(m_file.get(), LOCK_UN);
}

} // namespace sharefs::plan
