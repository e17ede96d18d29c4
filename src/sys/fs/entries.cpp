// read_entries: one look at many paths. One child asks for all that may hang, on a thread for each superblock, and
// waits for the next look if nothing did.
#include "base/parallel.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/fs/entry.hpp"
#include "sys/fs/files.hpp"
#include "sys/fs/mountstats.hpp"
#include "sys/fs/read_entry.hpp"
#include "sys/process/progress_counters.hpp"
#include "sys/process/waiting_children.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <poll.h>
#include <ranges>
#include <sched.h>
#include <unordered_map>

using namespace std::chrono_literals;

namespace sharefs::sys {
namespace {

constexpr int k_exit_without_memory = 125;
constexpr auto k_silence = 500ms; ///< beyond the deadline, for a child that cannot begin what is left

struct Question {
  std::size_t index = 0; ///< in EntryRequest::queries
  EntryQuery query = {};
};
template <FieldsOf<Question> Q> auto fields(Q& q) {
  return named("index", q.index, "query", q.query);
}

/// The questions of one superblock: asked in turn by a thread of the child. The first one that gets no answer in time
/// ends all that are left.
struct Queue {
  std::vector<Question> questions = {};
  std::size_t answered = 0;
  Deadline end = Deadline::max(); ///< for the answer that is waited for, once its question has begun
  std::string step = {};          ///< that it is in
};
template <FieldsOf<Queue> Q> auto fields(Q& q) {
  return named("questions", q.questions);
}

/// A message of the child: a question begins, a step of it begins, or its answer.
struct Report {
  std::size_t index = 0;
  std::string step = {};
  std::optional<Entry> entry = {};
};
template <FieldsOf<Report> R> auto fields(R& r) {
  return named("index", r.index, "step", r.step, "entry", r.entry);
}

/// In the child: what the parent asks next; empty once it has closed its end.
std::string next_message(int fd) {
  std::string size;
  std::string message;
  read_all(fd, size, sizeof(std::uint64_t));
  read_all(fd, message, WireReader(size).get<std::uint64_t>());
  return message;
}

/// In the child.
void ask(const std::vector<Queue>& queues, int root, int fd) {
  std::mutex pipe;
  const auto say = [&](const Report& report) {
    const std::lock_guard guard(pipe);
    write_all(fd, WireWriter().put(report).framed());
  };
  in_parallel(queues.size(), queues.size(), [&](std::size_t number) {
    ::unshare(CLONE_FILES); // a thousand threads that hang shall not use up the descriptors of one process
    try {
      for (const auto& [index, query] : queues[number].questions) {
        say({index});
        auto entry = read_entry(root, query, {}, [&](std::string_view step) { say({index, std::string(step)}); });
        say({index, {}, std::move(entry)});
      }
    } catch (...) { // without memory; the parent says that this child has ended
      ::_exit(k_exit_without_memory);
    }
  });
}

void give_up(Entry& entry, const Error& error) {
  entry.kind = EntryKind::unknown;
  entry.error_number = error.code == ErrorCode::timeout ? ETIMEDOUT : error.code == ErrorCode::permission ? EPERM : EIO;
  entry.detail = error.message;
}

/// In the parent: takes the child's reports until each question has its answer, or none in time.
class Listener {
 public:
  Listener(const EntryRequest& request, std::vector<Queue>& queues, std::vector<Entry>& entries)
      : m_request(request), m_queues(queues), m_entries(entries) {
    for (Queue& queue : queues)
      for (const Question& question : queue.questions)
        m_queue_of[question.index] = &queue;
  }

  /// Whatever has no answer is given up once nothing comes any more: the child has ended, or hangs as a whole. True if
  /// all was answered, and the child can be asked again.
  bool listen(WorkingChild& child) {
    std::string asked = WireWriter().put(WireWriter().put(m_queues).bytes()).bytes();
    Deadline silent = deadline_in(m_request.deadline + k_silence);
    std::size_t taken = 0;
    bool more = true;
    while (!m_queue_of.empty() && more && Clock::now() < silent) {
      if (!asked.empty())
        child.send(asked);
      pollfd news{child.fd(), static_cast<short>(asked.empty() ? POLLIN : POLLIN | POLLOUT), 0};
      ::poll(&news, 1, poll_time(std::min(silent, next_end())));
      more = child.drain();
      for (;;) {
        WireReader frames(child.result().substr(taken));
        const auto frame = frames.text();
        if (!frames.ok())
          break;
        taken += sizeof(std::uint64_t) + frame.size();
        silent = deadline_in(m_request.deadline + k_silence);
        take(WireReader(frame).get<Report>());
      }
      for (Queue& queue : m_queues)
        if (Clock::now() >= queue.end)
          give_up_queue(queue, {ErrorCode::timeout, no_answer(queue.step), {}, {}});
    }
    child.forget_result();
    if (more && m_queue_of.empty() && !m_any_given_up)
      return true;
    if (more) // what is not known hangs
      child.process().kill();
    const auto ended = child.finish();
    for (Queue& queue : m_queues)
      give_up_queue(queue, ended || more ? Error{ErrorCode::timeout, no_answer({}), {}, {}} : ended.error());
    return false;
  }

 private:
  [[nodiscard]] Deadline next_end() const { return std::ranges::min_element(m_queues, {}, &Queue::end)->end; }

  [[nodiscard]] std::string no_answer(const std::string& step) const {
    return "no answer" + (step.empty() ? "" : " to " + step) + " within " + format_duration(m_request.deadline / 1us);
  }

  void take(Report report) {
    const auto found = m_queue_of.find(report.index);
    if (found == m_queue_of.end())
      return;
    Queue& queue = *found->second;
    queue.step = std::move(report.step);
    if (!report.entry && queue.step.empty())
      queue.end = deadline_in(m_request.deadline);
    if (!report.entry)
      return;
    m_entries[report.index] = std::move(*report.entry);
    m_queue_of.erase(found);
    ++queue.answered;
    queue.end = Deadline::max();
  }

  void give_up_queue(Queue& queue, const Error& error) {
    for (; queue.answered < queue.questions.size(); ++queue.answered) {
      const auto index = queue.questions[queue.answered].index;
      give_up(m_entries[index], error);
      m_queue_of.erase(index);
      m_any_given_up = true;
    }
    queue.end = Deadline::max();
  }

  const EntryRequest& m_request;
  std::vector<Queue>& m_queues;
  std::vector<Entry>& m_entries;
  std::unordered_map<std::size_t, Queue*> m_queue_of; ///< of each question that has no answer yet
  bool m_any_given_up = false;
};

void ask_child(const Files& files, const EntryRequest& request, std::vector<Queue> queues,
               std::vector<Entry>& entries) {
  auto child = files.waiting_children().take(request.as, [&files, parent = ::getpid()](int fd) {
    if (!end_with(parent))
      return;
    for (auto message = next_message(fd); !message.empty(); message = next_message(fd)) {
      const auto asked = WireReader(message).get<std::vector<Queue>>();
      const Fd root = files.open_root(); // anew: something may have been mounted there
      ask(asked, root.get(), fd);
    }
  });
  if (child) {
    if (Listener(request, queues, entries).listen(*child))
      files.waiting_children().keep(request.as, std::move(*child));
    return;
  }
  for (const Queue& queue : queues)
    for (const Question& question : queue.questions) {
      entries[question.index].error_number = EAGAIN;
      entries[question.index].detail = child.error().message;
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
          (path.ends_with("/maps") || path.ends_with("/cmdline") || path.ends_with("/environ")));
}

} // namespace

std::vector<Entry> read_entries(const Files& files, const MountTable& mounts, const EntryRequest& request) {
  std::vector<Entry> entries(request.queries.size());
  std::map<std::uint64_t, Queue> queues; // by the superblock that the answers come from
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
      queues[~std::uint64_t{0} - index].questions.push_back({index, query});
      continue;
    }
    const MountEntry* owner = table ? table->owner_of(files.real_path(entry.resolved)) : nullptr;
    if (owner != nullptr && owner->fs_type == "autofs" && !query.automount)
      entry.detail = "looking would mount it";
    else
      queues[owner == nullptr ? 0 : (std::uint64_t{owner->major} << 32U) | owner->minor].questions.push_back(
          {index, query});
  }
  if (!queues.empty()) {
    const auto all = std::views::values(queues);
    ask_child(files, request, {all.begin(), all.end()}, entries);
  }
  std::optional<TakeoversByTarget> takeovers; // read only where it matters
  for (Entry& entry : entries)
    locate(entry, files, mounts, takeovers);
  return entries;
}

} // namespace sharefs::sys
