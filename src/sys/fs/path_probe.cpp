#include "sys/fs/path_probe.hpp"

#include "base/text.hpp"
#include "sys/process/child.hpp"
#include "sys/process/wire.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

using namespace std::chrono_literals;

namespace sharefs::sys {
namespace {

/// Children at a time; each costs two descriptors, and the usual limit is 1,024.
constexpr std::size_t k_max_children = 200;
/// For all killed children together.
constexpr std::chrono::milliseconds k_late_grace{50};

PathHealth health_of(int error_number) {
  switch (error_number) {
  case 0:
    return PathHealth::ok;
  case ESTALE:
    return PathHealth::stale;
  case EACCES:
  case EPERM:
    return PathHealth::denied;
  case EROFS:
    return PathHealth::read_only;
  case ENOENT:
  case ENOTDIR:
    return PathHealth::missing;
  case ENOSPC:
  case EDQUOT:
    return PathHealth::full;
  case ETIMEDOUT:
    return PathHealth::hung; // a soft mount that gave up
  default:
    return PathHealth::failed;
  }
}

// ---- in the child ----

/// The step that is under way is told before it begins, so that a time-out can name it.
class Steps {
 public:
  explicit Steps(int fd) : m_fd(fd) {}
  void begin(std::string_view step) const { send('s', WireWriter().put(step)); }
  void space(const struct statfs& info, std::chrono::microseconds latency) const {
    const auto block = static_cast<std::uint64_t>(info.f_frsize != 0 ? info.f_frsize : info.f_bsize);
    send('v', WireWriter()
                  .put(latency.count())
                  .put(block * info.f_blocks)
                  .put(block * info.f_bavail)
                  .put(static_cast<std::uint64_t>(info.f_files))
                  .put(static_cast<std::uint64_t>(info.f_ffree)));
  }
  void end(int error_number) const { send('e', WireWriter().put(error_number)); }

 private:
  void send(char kind, const WireWriter& values) const {
    write_all(m_fd, WireWriter().put(kind).put(values.bytes()).bytes());
  }
  int m_fd;
};

std::string probe_file_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return ".sharefs-probe-" + std::string(host.data()) + "-" + std::to_string(::getpid());
}

/// Write, fsync, read back, compare and delete. 0 or errno; EIO for bytes that come back changed.
int test_writing(const std::string& path, const Steps& steps) {
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory)
    return errno;
  const std::string name = probe_file_name();
  const std::string content = name + "\n";
  steps.begin("create");
  const Fd file(::openat(directory.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file)
    return errno;
  const int error = [&] {
    steps.begin("write");
    if (!write_all(file.get(), content))
      return errno;
    steps.begin("fsync");
    if (::fsync(file.get()) != 0)
      return errno;
    steps.begin("read");
    // The pages are in this host's cache; without them the read goes to the server.
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    std::string back(content.size() + 1, '\0');
    const ssize_t size = ::pread(file.get(), back.data(), back.size(), 0);
    if (size < 0)
      return errno;
    back.resize(static_cast<std::size_t>(size));
    if (back == content)
      return 0;
    steps.begin("compare");
    return EIO;
  }();
  if (error == 0)
    steps.begin("delete");
  if (::unlinkat(directory.get(), name.c_str(), 0) != 0 && error == 0)
    return errno;
  return error;
}

void probe(const PathProbeRequest& request, int fd) {
  const Steps steps(fd);
  steps.begin("statfs");
  struct statfs info{};
  const auto begin = Clock::now();
  int error = ::statfs(request.path.c_str(), &info) == 0 ? 0 : errno;
  if (error == 0) {
    steps.space(info, std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin));
    if (request.write_test)
      error = test_writing(request.path, steps);
  }
  steps.end(error);
}

// ---- in the parent ----

PathProbe read_steps(std::string_view bytes, const PathProbeRequest& request) {
  PathProbe probe;
  probe.health = PathHealth::hung;
  std::string step = "start";
  bool ended = false;
  WireReader reader(bytes);
  while (!reader.at_end()) {
    const char kind = reader.get<char>();
    WireReader values(reader.text());
    if (!reader.ok())
      break; // half a message
    if (kind == 's')
      step = values.text();
    if (kind == 'e') {
      probe.error_number = values.get<int>();
      probe.health = health_of(probe.error_number);
      ended = true;
    }
    if (kind == 'v') {
      probe.latency = std::chrono::microseconds(values.get<std::chrono::microseconds::rep>());
      probe.size_bytes = values.get<std::uint64_t>();
      probe.free_bytes = values.get<std::uint64_t>();
      probe.files = values.get<std::uint64_t>();
      probe.free_files = values.get<std::uint64_t>();
    }
  }
  if (!ended)
    probe.detail = "no answer to " + step + " within " + format_duration(request.deadline / 1us);
  else if (probe.health != PathHealth::ok)
    probe.detail = step == "compare" ? "what was read back differs from what was written"
                                     : step + ": " + errno_text(probe.error_number);
  return probe;
}

struct Running {
  std::size_t index;
  WorkingChild child;
  Deadline deadline;
  bool over = false;
};

PathProbe failed_probe(const Error& error) {
  PathProbe probe;
  probe.health = error.code == ErrorCode::permission ? PathHealth::denied : PathHealth::failed;
  probe.detail = error.message;
  return probe;
}

/// Wait until one of them has something to say or is late, and take it.
void attend(std::vector<Running>& running) {
  std::vector<pollfd> fds;
  Deadline next = Deadline::max();
  for (const Running& one : running) {
    fds.push_back({one.child.fd(), POLLIN, 0});
    next = std::min(next, one.deadline);
  }
  ::poll(fds.data(), fds.size(), poll_time(next));
  for (Running& one : running)
    one.over = !one.child.drain() || Clock::now() >= one.deadline;
}

PathProbe conclude(Running& one, const PathProbeRequest& request, std::vector<Child>& late) {
  const bool silent = one.child.fd() >= 0;
  if (silent) {
    one.child.process().kill();
    late.push_back(std::move(one.child.process()));
  } else if (const auto ended = one.child.finish(); !ended) {
    return failed_probe(ended.error());
  }
  return read_steps(one.child.result(), request);
}

} // namespace

const char* to_string(PathHealth health) {
  switch (health) {
  case PathHealth::ok:
    return "ok";
  case PathHealth::hung:
    return "hung";
  case PathHealth::stale:
    return "stale";
  case PathHealth::denied:
    return "denied";
  case PathHealth::read_only:
    return "read_only";
  case PathHealth::missing:
    return "missing";
  case PathHealth::full:
    return "full";
  case PathHealth::failed:
    return "failed";
  }
  return "failed";
}

std::vector<PathProbe> probe_paths(const std::vector<PathProbeRequest>& requests) {
  std::vector<PathProbe> results(requests.size());
  std::vector<Running> running;
  std::vector<Child> late;
  std::size_t next = 0;
  while (next < requests.size() || !running.empty()) {
    for (; next < requests.size() && running.size() < k_max_children; ++next) {
      const PathProbeRequest& request = requests[next];
      auto child = WorkingChild::start(request.as, [&request](int fd) { probe(request, fd); });
      if (child)
        running.push_back({next, std::move(*child), deadline_in(request.deadline)});
      else
        results[next] = failed_probe(child.error());
    }
    if (running.empty())
      continue;
    attend(running);
    for (Running& one : running)
      if (one.over)
        results[one.index] = conclude(one, requests[one.index], late);
    std::erase_if(running, [](const Running& one) { return one.over; });
  }
  // What can be killed leaves no zombie behind; what hangs in the kernel is left to it.
  const Deadline last = deadline_in(k_late_grace);
  for (Child& child : late)
    child.reap_until(last);
  return results;
}

} // namespace sharefs::sys
