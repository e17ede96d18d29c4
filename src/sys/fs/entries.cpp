// read_entries: one look at many paths. One child asks for all that may hang, on a thread for each superblock.
#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/fs/entry.hpp"
#include "sys/fs/files.hpp"
#include "sys/fs/mountstats.hpp"
#include "sys/fs/read_entry.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <poll.h>
#include <sched.h>
#include <set>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;

namespace sharefs::sys {
namespace {

constexpr int k_exit_without_memory = 125;
constexpr auto k_silence = 500ms; ///< beyond the deadline, for a child that cannot begin what is left

/// The questions for the child, as numbers in EntryRequest::queries, by the superblock that the answers come from.
using Questions = std::map<std::uint64_t, std::vector<std::size_t>>;

/// What the child says of a question: the entry, or why there is none.
struct Report {
  std::size_t index = 0;
  std::optional<Entry> entry;
  std::string detail;
};
template <FieldsOf<Report> R> auto fields(R& r) {
  return named("index", r.index, "entry", r.entry, "detail", r.detail);
}

std::string no_answer(const EntryRequest& request, std::string_view step) {
  return "no answer" + (step.empty() ? "" : " to " + std::string(step)) + " within " +
         format_duration(request.deadline / 1us);
}

/// In the child: a thread for each superblock asks its questions in turn. The first one that gets no answer in time
/// ends all that are left on its superblock.
class Asker {
 public:
  Asker(const EntryRequest& request, const Questions& questions, int root, int fd)
      : m_request(request), m_root(root), m_fd(fd) {
    for (const auto& [superblock, indices] : questions)
      m_queues.push_back({indices});
    m_unfinished = m_queues.size();
  }

  void run() {
    bool has_threads = false;
    while (!all_taken() && start_thread())
      has_threads = true;
    if (!has_threads)
      take_queues();
    std::unique_lock lock(m_mutex);
    while (m_unfinished > 0) {
      const auto now = Clock::now();
      Deadline next = now + m_request.deadline; // of what begins meanwhile none ends before
      for (Queue& queue : m_queues) {
        if (queue.asked < queue.indices.size() && now >= queue.end)
          give_up(queue);
        if (queue.asked < queue.indices.size())
          next = std::min(next, queue.end);
      }
      if (m_unfinished > 0)
        m_finished.wait_until(lock, next);
    }
  }

 private:
  struct Queue {
    std::vector<std::size_t> indices = {};
    std::size_t asked = 0;          ///< which of them is being asked
    Deadline end = Deadline::max(); ///< for its answer, once it is begun
    std::string_view step = {};     ///< that it is in; a literal
  };

  [[nodiscard]] bool all_taken() {
    const std::lock_guard guard(m_mutex);
    return m_taken == m_queues.size();
  }

  /// False: this host allows no more threads.
  bool start_thread() {
    try {
      std::thread([this] {
        ::unshare(CLONE_FILES); // a thousand threads that hang shall not use up the descriptors of one process
        try {
          take_queues();
        } catch (...) { // without memory; the parent says that this child has ended
          ::_exit(k_exit_without_memory);
        }
      }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }

  void take_queues() {
    std::unique_lock lock(m_mutex);
    while (m_taken < m_queues.size()) {
      Queue& queue = m_queues[m_taken++];
      while (queue.asked < queue.indices.size())
        ask_next(queue, lock);
    }
  }

  void ask_next(Queue& queue, std::unique_lock<std::mutex>& lock) {
    const std::size_t index = queue.indices[queue.asked];
    queue.end = deadline_in(m_request.deadline);
    queue.step = {};
    lock.unlock();
    auto entry = read_entry(m_root, m_request.queries[index], {}, [&](std::string_view step) {
      const std::lock_guard guard(m_mutex);
      queue.step = step;
    });
    lock.lock();
    if (queue.asked < queue.indices.size()) // it was not given up meanwhile
      report(queue, {index, std::move(entry), {}});
  }

  void give_up(Queue& queue) {
    const std::string detail = no_answer(m_request, queue.step);
    while (queue.asked < queue.indices.size())
      report(queue, {queue.indices[queue.asked], std::nullopt, detail});
  }

  void report(Queue& queue, const Report& report) {
    write_all(m_fd, WireWriter().put(report).framed());
    if (++queue.asked == queue.indices.size() && --m_unfinished == 0)
      m_finished.notify_one();
  }

  const EntryRequest& m_request;
  int m_root, m_fd;
  std::mutex m_mutex; ///< of all below, and of the pipe
  std::condition_variable m_finished;
  std::vector<Queue> m_queues;
  std::size_t m_taken = 0, m_unfinished = 0;
};

void give_up(Entry& entry, const Error& error) {
  entry.kind = EntryKind::unknown;
  entry.error_number = error.code == ErrorCode::timeout ? ETIMEDOUT : error.code == ErrorCode::permission ? EPERM : EIO;
  entry.detail = error.message;
}

/// Takes the child's reports until each question has one. Those that are missing are given up once nothing comes any
/// more: the child has ended, or hangs as a whole.
void listen(WorkingChild& child, const EntryRequest& request, const Questions& questions, std::vector<Entry>& entries) {
  std::set<std::size_t> open;
  for (const auto& [superblock, indices] : questions)
    open.insert(indices.begin(), indices.end());
  Deadline silent = deadline_in(request.deadline + k_silence);
  std::size_t taken = 0;
  bool more = true;
  while (!open.empty() && more && Clock::now() < silent) {
    pollfd news{child.fd(), POLLIN, 0};
    ::poll(&news, 1, poll_time(silent));
    more = child.drain();
    for (;;) {
      WireReader frames(child.result().substr(taken));
      const auto frame = frames.text();
      if (!frames.ok())
        break;
      taken += sizeof(std::uint64_t) + frame.size();
      silent = deadline_in(request.deadline + k_silence);
      auto report = WireReader(frame).get<Report>();
      if (open.erase(report.index) == 0)
        continue;
      if (report.entry)
        entries[report.index] = std::move(*report.entry);
      else
        give_up(entries[report.index], {ErrorCode::timeout, report.detail, {}, {}});
    }
  }
  if (more) // all is known, or what is not known hangs
    child.process().kill();
  const auto ended = child.finish();
  for (const std::size_t index : open)
    give_up(entries[index], ended || more ? Error{ErrorCode::timeout, no_answer(request, {}), {}, {}} : ended.error());
}

void ask_child(const Files& files, const EntryRequest& request, const Questions& questions,
               std::vector<Entry>& entries) {
  auto child = WorkingChild::start(request.as, [&](int fd) {
    const Fd root = files.open_root();
    Asker(request, questions, root.get(), fd).run();
    ::_exit(0); // before the last thread could find its mutex destroyed
  });
  if (child)
    return listen(*child, request, questions, entries);
  for (const auto& [superblock, indices] : questions)
    for (const std::size_t index : indices) {
      entries[index].error_number = EAGAIN;
      entries[index].detail = child.error().message;
    }
}

Entry unasked(const EntryQuery& query) {
  Entry entry;
  entry.path = query.path;
  entry.resolved = normalize_path(query.path);
  entry.error_number = EREMOTE;
  return entry;
}

/// Where it lies, by the mount table. Locks of NFS 4 exclude nobody while another host has this one's client name.
void locate(Entry& entry, const Files& files, const MountTable& mounts, std::optional<TakeoversByTarget>& takeovers) {
  if (const MountEntry* owner = mounts.owner_of(entry.resolved)) {
    entry.mount = owner->target;
    entry.fs_type = owner->fs_type;
    entry.shared = is_shared(*owner);
    entry.lock_scope = lock_scope(*owner);
    if (owner->fs_type != "nfs4" || entry.lock_scope != LockScope::all_hosts)
      return;
    if (!takeovers)
      takeovers = read_takeovers(files);
    const auto found = takeovers->find(owner->target);
    if (found != takeovers->end() && shows_second_host(found->second))
      entry.lock_scope = LockScope::same_name;
  }
}

/// Reading these takes the memory lock of that process, which it keeps while it hangs in a page fault; or locks of a
/// client that nfsd serves.
bool waits_for_others(std::string_view path) {
  return path.starts_with("/proc/fs/nfsd/clients/") ||
         (path.starts_with("/proc/") && path.size() > 6 && path[6] >= '0' && path[6] <= '9' &&
          (path.ends_with("/maps") || path.ends_with("/cmdline")));
}

} // namespace

std::vector<Entry> read_entries(const Files& files, const MountTable& mounts, const EntryRequest& request) {
  std::vector<Entry> entries(request.queries.size());
  Questions questions;
  // What may hang is decided by the table of this process, whatever `mounts` describes.
  const auto table = files.mounts();
  const bool other_user = request.as && request.as->uid != ::geteuid();
  const bool looks_itself = table && !other_user && !files.root_may_hang();
  const auto stop_at = looks_itself ? files.hanging_in(*table) : MountTargets();
  const Fd root = looks_itself ? files.open_root() : Fd();
  for (std::size_t index = 0; index < entries.size(); ++index) {
    const EntryQuery& query = request.queries[index];
    Entry& entry = entries[index];
    const bool locked = waits_for_others(query.path);
    if (looks_itself && !locked && !stop_at.contains(query.path))
      entry = read_entry(root.get(), query, stop_at, nullptr);
    else
      entry = unasked(query);
    if (entry.error_number != EREMOTE)
      continue;
    if (locked) { // what one process keeps locked says nothing about another
      questions[~std::uint64_t{0} - index].push_back(index);
      continue;
    }
    const MountEntry* owner = table ? table->owner_of(files.real_path(entry.resolved)) : nullptr;
    if (owner != nullptr && owner->fs_type == "autofs" && !query.automount)
      entry.detail = "looking would mount it";
    else
      questions[owner == nullptr ? 0 : (std::uint64_t{owner->major} << 32U) | owner->minor].push_back(index);
  }
  if (!questions.empty())
    ask_child(files, request, questions, entries);
  std::optional<TakeoversByTarget> takeovers; // read only where it matters
  for (Entry& entry : entries)
    locate(entry, files, mounts, takeovers);
  return entries;
}

} // namespace sharefs::sys
