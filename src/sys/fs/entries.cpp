// read_entries: reads many paths in one request. One child reads all paths that may hang, in a few threads more than
// there are paths that hang. If nothing hung, the child waits for the next request.
#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/fs/entry.hpp"
#include "sys/fs/files.hpp"
#include "sys/fs/mountstats.hpp"
#include "sys/fs/read_entry.hpp"
#include "sys/process/child.hpp"
#include "sys/process/waiting_children.hpp"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <poll.h>
#include <ranges>
#include <sched.h>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

using namespace std::chrono_literals;

namespace sharefs::sys {
namespace {

constexpr std::size_t k_first_threads = 4;
constexpr auto k_report_interval = 20ms;
constexpr std::size_t k_few_answers = 16; ///< in k_report_interval: a thousand mounts would take more than a second
constexpr int k_exit_without_memory = 125;
constexpr int k_exit_unheard = 124;
/// Added to the deadline. A child that reports nothing for so long cannot even begin the questions that are left.
constexpr auto k_silence = 500ms;

struct Question {
  std::size_t index = 0; ///< the place of the query in EntryRequest::queries
  EntryQuery query = {};
};
template <FieldsOf<Question> Q> auto fields(Q& q) {
  return named("index", q.index, "query", q.query);
}

/// The questions of one superblock, which one thread of the child asks in turn. If one of them gets no answer in time,
/// all that are left are given up.
struct Queue {
  std::vector<Question> questions = {};
  std::size_t answered = 0;
  Deadline end = Deadline::max(); ///< the deadline of the current question, once it has begun
  std::string step = {};          ///< the system call that the current question has reached
};
template <FieldsOf<Queue> Q> auto fields(Q& q) {
  return named("questions", q.questions);
}

/// A message of the child: the beginning of a question, of one of its steps, or the answer.
struct Report {
  std::size_t index = 0;
  std::string step = {};
  std::optional<Entry> entry = {};
};
template <FieldsOf<Report> R> auto fields(R& r) {
  return named("index", r.index, "step", r.step, "entry", r.entry);
}

/// Reads the next message of the parent, in the child; empty once the parent has closed its end.
std::string read_message(int fd) {
  std::string size;
  std::string message;
  read_all(fd, size, sizeof(std::uint64_t));
  read_all(fd, message, WireReader(size).get<std::uint64_t>());
  return message;
}

/// Answers all questions, in the child. A few threads take the queues in turn. After each k_report_interval with few
/// answers, as many threads again join them, so that those that hang hold nobody up: a thread for each queue would cost
/// more than most answers. Reports are sent at each k_report_interval, because each message wakes the parent.
void answer_questions(const std::vector<Queue>& queues, int root, int fd) {
  bool alone = queues.size() == 1; // no thread but this one
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t running = 0, taken = 0, answered = 0;
  std::string reports;
  const auto send_reports = [&] {
    if (!write_all(fd, std::exchange(reports, {})))
      ::_exit(k_exit_unheard); // the parent counts answers, so none may be missing
  };
  const auto report = [&](const Report& one) {
    const std::lock_guard guard(mutex);
    answered += one.entry ? 1 : 0;
    reports += WireWriter().put(one).framed();
    if (alone)
      send_reports();
  };
  const auto take_queue = [&]() -> const Queue* {
    const std::lock_guard guard(mutex);
    return taken < queues.size() ? &queues[taken++] : nullptr;
  };
  const auto answer = [&]() noexcept {
    ::unshare(CLONE_FILES); // otherwise a thousand hung threads could use up the descriptors of the process
    try {
      while (const Queue* queue = take_queue())
        for (const auto& [index, query] : queue->questions) {
          report({index});
          auto entry = read_entry(root, query, {}, [&](std::string_view step) { report({index, std::string(step)}); });
          report({index, {}, std::move(entry)});
        }
    } catch (...) { // out of memory: the parent reports that this child has ended
      ::_exit(k_exit_without_memory);
    }
  };
  const auto answer_in_thread = [&] {
    answer();
    const std::lock_guard guard(mutex);
    --running;
    ended.notify_one();
  };
  if (alone)
    return answer();
  std::vector<std::jthread> threads;
  std::unique_lock lock(mutex);
  do {
    send_reports();
    const bool slow = std::exchange(answered, 0) < k_few_answers;
    const auto without_thread = queues.size() - std::max(taken, threads.size());
    const auto more = slow ? std::min(std::max(threads.size(), k_first_threads), without_thread) : 0;
    running += more;
    lock.unlock(); // to start a thread may take longer than an answer
    std::size_t started = 0;
    try {
      for (; started < more; ++started)
        threads.emplace_back(answer_in_thread);
    } catch (const std::system_error&) { // fewer threads take longer
      if (threads.empty()) {
        alone = true;
        return answer();
      }
    }
    lock.lock();
    running -= more - started;
  } while (!ended.wait_for(lock, k_report_interval, [&] { return running == 0; }));
  send_reports();
}

void give_up(Entry& entry, const Error& error) {
  entry.kind = EntryKind::unknown;
  entry.error_number = error.code == ErrorCode::timeout ? ETIMEDOUT : error.code == ErrorCode::permission ? EPERM : EIO;
  entry.detail = error.message;
}

/// Receives the child's reports, in the parent, until each question has an answer or is given up.
class Listener {
 public:
  Listener(const EntryRequest& request, std::vector<Queue>& queues, std::vector<Entry>& entries)
      : m_request(request), m_queues(queues), m_entries(entries) {
    for (Queue& queue : queues)
      for (const Question& question : queue.questions)
        m_queue_of[question.index] = &queue;
  }

  /// Gives up all unanswered questions when the child sends nothing more, because it has ended or hangs as a whole.
  /// True if all questions were answered, so that the child can be used again.
  bool listen(WorkingChild& child) {
    std::string asked = WireWriter().put(m_queues).framed();
    Deadline silence_end = deadline_in(m_request.deadline + k_silence);
    std::size_t taken = 0;
    bool more = true;
    // The time is asked for once in each round: a thousand queues would ask for it a thousand times.
    while (!m_queue_of.empty() && more && Clock::now() < silence_end) {
      if (!asked.empty())
        child.send(asked);
      pollfd news{child.fd(), static_cast<short>(asked.empty() ? POLLIN : POLLIN | POLLOUT), 0};
      ::poll(&news, 1, poll_time(std::min(silence_end, next_end())));
      more = child.drain();
      const auto now = Clock::now();
      const auto end = deadline_in(m_request.deadline);
      for (;;) {
        WireReader frames(child.result().substr(taken));
        const auto frame = frames.text();
        if (!frames.ok())
          break;
        taken += sizeof(std::uint64_t) + frame.size();
        silence_end = end + k_silence;
        record(WireReader(frame).get<Report>(), end);
      }
      for (Queue& queue : m_queues)
        if (now >= queue.end)
          give_up_queue(queue, {ErrorCode::timeout, no_answer(queue.step), {}, {}});
    }
    if (more && m_queue_of.empty() && !m_any_given_up) {
      child.forget_result();
      return true;
    }
    if (more) // the child still exists, so a question that has no answer hangs
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

  /// `end` is the deadline of a question that begins now.
  void record(Report report, Deadline end) {
    const auto found = m_queue_of.find(report.index);
    if (found == m_queue_of.end())
      return;
    Queue& queue = *found->second;
    queue.step = std::move(report.step);
    if (!report.entry && queue.step.empty())
      queue.end = end;
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
  std::unordered_map<std::size_t, Queue*> m_queue_of; ///< by index of each question that has no answer yet
  bool m_any_given_up = false;
};

void ask_child(const Files& files, const EntryRequest& request, std::vector<Queue> queues,
               std::vector<Entry>& entries) {
  auto child = files.waiting_children().take(request.as, [&files, parent = ::getpid()](int fd) {
    if (!end_with(parent))
      return;
    for (auto message = read_message(fd); !message.empty(); message = read_message(fd)) {
      const auto asked = WireReader(message).get<std::vector<Queue>>();
      const Fd root = files.open_root(); // it is opened each time, because something may have been mounted there
      answer_questions(asked, root.get(), fd);
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

/// Returns the entry of a path that is not read in this process; EREMOTE marks it for the child.
Entry make_unread(const EntryQuery& query) {
  Entry entry;
  entry.path = query.path;
  entry.resolved = normalize_path(query.path);
  entry.error_number = EREMOTE;
  return entry;
}

/// Fills in the mount of the entry from the mount table. Locks of NFS 4 do not exclude a host that has the same client
/// name as this one.
void fill_mount(Entry& entry, const Files& files, const MountTable& mounts, bool locks,
                std::optional<TakeoversByTarget>& takeovers) {
  const MountEntry* owner = mounts.owner_of(entry.resolved);
  if (owner == nullptr)
    return;
  entry.mount = owner->target;
  entry.fs_type = owner->fs_type;
  entry.shared = is_shared(*owner);
  if (!locks)
    return;
  entry.lock_scope = lock_scope(*owner);
  if (owner->fs_type != "nfs4" || entry.lock_scope != LockScope::all_hosts)
    return;
  if (!takeovers)
    takeovers = read_takeovers(files);
  const auto found = takeovers->find(owner->target);
  if (found != takeovers->end() && shows_second_host(found->second))
    entry.lock_scope = LockScope::same_name;
}

/// True for files of /proc that can hang. Reading maps, cmdline or environ takes the memory lock of that process, which
/// a process keeps while it hangs in a page fault; reading the clients of nfsd takes locks of a client.
bool waits_for_others(std::string_view path) {
  return path.starts_with("/proc/fs/nfsd/clients/") ||
         (path.starts_with("/proc/") && path.size() > 6 && path[6] >= '0' && path[6] <= '9' &&
          (path.ends_with("/maps") || path.ends_with("/cmdline") || path.ends_with("/environ")));
}

} // namespace

std::vector<Entry> read_entries(const Files& files, const MountTable& mounts, const EntryRequest& request) {
  std::vector<Entry> entries(request.queries.size());
  std::map<std::uint64_t, Queue> queues; // by superblock
  // The table of this process decides which paths may hang, because `mounts` may describe another machine.
  const auto table = files.mounts();
  const bool other_user = request.as && request.as->uid != ::geteuid();
  const bool reads_in_process = table && !other_user && !files.root_may_hang();
  const auto stop_at = reads_in_process ? files.hanging_in(*table) : MountTargets();
  const Fd root = reads_in_process ? files.open_root() : Fd();
  for (std::size_t index = 0; index < entries.size(); ++index) {
    const EntryQuery& query = request.queries[index];
    Entry& entry = entries[index];
    const bool locked = waits_for_others(query.path);
    if (reads_in_process && !locked && !stop_at.contains(query.path))
      entry = read_entry(root.get(), query, stop_at, nullptr);
    else
      entry = make_unread(query);
    if (entry.error_number != EREMOTE)
      continue;
    if (locked) { // each gets a queue of its own: a lock of one process does not block the files of another
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
  std::optional<TakeoversByTarget> takeovers; // read only if a mount of NFS 4 needs it
  for (std::size_t index = 0; index < entries.size(); ++index)
    fill_mount(entries[index], files, mounts, request.queries[index].locks, takeovers);
  return entries;
}

} // namespace sharefs::sys
