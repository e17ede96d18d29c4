#include "plan/host_lock.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
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

template <FieldsOf<LockHolder> H> auto fields(H& h) {
  return named("pid", h.pid, "command", h.command, "user", h.user, "since", h.since);
}

namespace {

// This uses flock(2) and not fcntl(2): fcntl locks belong to the process, and closing any descriptor of the file
// releases them. A flock belongs to the open file, which a forked child shares. But every child of sharefs first closes
// all its descriptors, or they are closed at execve(2) (O_CLOEXEC), and the destructor unlocks explicitly. So even a
// child that hangs in the kernel does not keep the lock.

constexpr std::chrono::milliseconds k_poll{50};
constexpr std::size_t k_holder_limit = 65536;

/// Returns local time, because a person compares it with a clock: "12:00:03", with the date if it is not today.
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

/// Returns "another sharefs (`sharefs mount --all`, pid 4711) has been at work since 12:00:03".
std::string describe_holder(const std::string& content, const std::string& user) {
  const auto holder = from_json<LockHolder>(content, k_holder_limit);
  if (!holder || holder->pid == 0)
    return "another sharefs is at work"; // the holder has not yet written its name
  auto text = "another sharefs (`" + to_utf8(holder->command) + "`, pid " + std::to_string(holder->pid);
  if (!holder->user.empty() && holder->user != user)
    text += ", user " + to_utf8(holder->user);
  return text + ") has been at work since " + clock_text(holder->since);
}

/// Writes the name of this process into the lock file.
void write_holder(int descriptor, LockHolder self) {
  self.pid = ::getpid();
  self.since = static_cast<std::int64_t>(std::time(nullptr));
  // The content is only for messages of other processes. If it cannot be written (a full disk), they name no holder.
  if (::ftruncate(descriptor, 0) == 0)
    sys::write_all(descriptor, dump_line(json_of(self, JsonTexts::exact)) + "\n");
}

} // namespace

Result<HostLock> HostLock::acquire(const sys::Files& files, const std::string& state_directory, LockHolder self,
                                   std::chrono::milliseconds wait,
                                   const std::function<void(const std::string&)>& on_wait, const std::string& name) {
  TRY_ASSIGN(const auto state, PrivateDirectory::make(files, state_directory));
  TRY_ASSIGN(auto file, state.open_file(name, O_RDWR | O_CREAT | O_APPEND));
  const auto deadline = sys::deadline_in(wait);
  for (bool reported = false; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno == EINTR)
      continue;
    if (errno != EWOULDBLOCK)
      return fail(errno_error(errno, join_path(state_directory, name)));
    const auto holder = describe_holder(state.read(name).value_or(""), self.user);
    if (interrupted())
      return fail(ErrorCode::interrupted, "interrupted while waiting: " + holder);
    if (sys::Clock::now() >= deadline)
      return fail(ErrorCode::busy, holder, "wait for its end, or wait longer with `--wait SECONDS`");
    if (!reported && on_wait)
      on_wait(holder);
    reported = true;
    std::this_thread::sleep_for(std::min<sys::Clock::duration>(k_poll, deadline - sys::Clock::now()));
  }
  write_holder(file.get(), std::move(self));
  return HostLock(std::move(file));
}

HostLock::~HostLock() {
  if (!m_file)
    return;
  // The next process takes the lock before it writes its own name; until then nobody must read ours.
  [[maybe_unused]] const int emptied = ::ftruncate(m_file.get(), 0);
  ::flock(m_file.get(), LOCK_UN);
}

} // namespace sharefs::plan
