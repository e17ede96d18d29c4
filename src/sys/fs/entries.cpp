// read_entries: one look at many paths. One child asks for all that may hang, on enough threads that no question waits
// behind one that hangs.
#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/fs/entry.hpp"
#include "sys/fs/files.hpp"
#include "sys/fs/read_entry.hpp"
#include "sys/mounts/mountstats.hpp"
#include "sys/process/child.hpp"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

using namespace std::chrono_literals;

namespace sharefs::sys {
namespace {

constexpr auto k_stall = 20ms; ///< a question without an answer for so long gets a second thread beside it
constexpr std::size_t k_most_unsent = 32U << 10U; ///< bytes of a child's report; more is sent at once
constexpr std::size_t k_most_threads = 2048;
constexpr std::size_t k_stack_bytes = 256U << 10U;
constexpr int k_exit_without_memory = 125;
constexpr auto k_silence = 500ms; ///< beyond the deadline, for a child that cannot begin what is left

/// A question for the child, and the superblock that the answer has to come from.
struct Question {
  std::size_t index; ///< in EntryRequest::queries
  std::uint64_t superblock;
};

// ---- in the child ----

enum class Event : char { step, answered }; ///< the first `step` says that it has begun

/// The questions of one child, shared by its threads.
class Asker {
 public:
  Asker(const EntryRequest& request, const std::vector<Question>& questions, int root, int fd)
      : m_request(request), m_root(root), m_fd(fd), m_alone(questions.size() == 1) {
    for (const Question& question : questions)
      m_waiting[question.superblock].push_back(question.index);
    for (auto& [superblock, indices] : m_waiting)
      std::reverse(indices.begin(), indices.end()); // taken from the back
  }

  void run() {
    if (m_alone || !start_thread()) {
      m_alone = true;
      return work();
    }
    // A second thread, and then twice as many, only while nothing is answered.
    std::unique_lock lock(m_mutex);
    for (std::size_t answered = 0; !m_over.wait_for(lock, k_stall, [this] { return m_threads == 0; });
         answered = m_answered) {
      ++m_stalls;
      flush_if(true);
      const std::size_t more =
          m_answered == answered ? std::min({m_threads, k_most_threads - m_threads, count_free()}) : 0;
      for (std::size_t i = 0; i < more && start_thread(); ++i)
        ;
    }
    flush_if(true);
  }

 private:
  struct Running {
    std::size_t index;
    std::size_t since; ///< m_stalls: asking for the time would cost as much as the question
  };

  bool start_thread() {
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, k_stack_bytes);
    ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    const auto body = [](void* self) noexcept -> void* {
      auto& asker = *static_cast<Asker*>(self);
      ::unshare(CLONE_FILES); // a thousand threads that hang shall not use up the descriptors of one process
      try {
        asker.work();
      } catch (...) { // without memory; the parent says that this child has ended
        ::_exit(k_exit_without_memory);
      }
      const std::lock_guard guard(asker.m_mutex);
      --asker.m_threads;
      asker.m_over.notify_one();
      return nullptr;
    };
    ++m_threads;
    const bool started = ::pthread_create(&thread, &attributes, body, this) == 0;
    if (!started)
      --m_threads;
    ::pthread_attr_destroy(&attributes);
    return started;
  }

  /// Not behind a question on the same superblock that has no answer for some time: it would hang as well.
  [[nodiscard]] bool is_free(std::uint64_t superblock) const {
    const auto running = m_running.find(superblock);
    return running == m_running.end() || m_stalls - running->second.since < 2;
  }
  [[nodiscard]] std::size_t count_free() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(m_waiting, [this](const auto& waiting) { return is_free(waiting.first); }));
  }

  void work() {
    std::unique_lock lock(m_mutex);
    for (;;) {
      const auto next = std::find_if(m_waiting.begin(), m_waiting.end(),
                                     [this](const auto& waiting) { return is_free(waiting.first); });
      if (next == m_waiting.end())
        return; // the one that hangs there goes on with them if it is answered after all
      const auto superblock = next->first;
      const auto index = next->second.back();
      next->second.pop_back();
      if (next->second.empty())
        m_waiting.erase(next);
      m_running.try_emplace(superblock, Running{index, m_stalls});
      announce(index, {});
      lock.unlock();
      const Entry entry = read_entry(m_root, m_request.queries[index], {}, [&](std::string_view step) {
        const std::lock_guard guard(m_mutex);
        announce(index, step);
      });
      lock.lock();
      m_steps.erase(index);
      m_unsent += frame(Event::answered, WireWriter().put(index).put(entry));
      flush_if(m_alone || m_unsent.size() > k_most_unsent);
      ++m_answered;
      if (const auto mine = m_running.find(superblock); mine != m_running.end() && mine->second.index == index)
        m_running.erase(mine);
    }
  }

  static std::string frame(Event event, const WireWriter& values) {
    return WireWriter().put(event).put(values.bytes()).framed();
  }
  void announce(std::size_t index, std::string_view step) {
    m_steps[index] = step;
    flush_if(m_alone);
  }
  /// What is sent at once would wake the parent for every step of a thousand questions: it can wait for k_stall, and is
  /// not sent for those that are answered by then.
  void flush_if(bool now) {
    if (!now)
      return;
    for (const auto& [index, step] : m_steps)
      m_unsent += frame(Event::step, WireWriter().put(index).put(step));
    m_steps.clear();
    write_all(m_fd, m_unsent);
    m_unsent.clear();
  }

  const EntryRequest& m_request;
  int m_root, m_fd;
  bool m_alone; ///< no thread but this one
  std::string m_unsent;
  /// Where each question is that was not answered, if that is unsent. Steps are named by literals.
  std::map<std::size_t, std::string_view> m_steps;
  std::mutex m_mutex;
  std::condition_variable m_over; ///< no thread is left
  std::size_t m_threads = 0, m_answered = 0;
  std::size_t m_stalls = 0;                                    ///< how often k_stall has passed
  std::map<std::uint64_t, std::vector<std::size_t>> m_waiting; ///< by superblock
  std::map<std::uint64_t, Running> m_running;                  ///< the oldest of each superblock
};

// ---- in the parent ----

/// Listens to the child until every question has an answer or a verdict.
class Listener {
 public:
  Listener(const EntryRequest& request, const std::vector<Question>& questions, std::vector<Entry>& entries)
      : m_request(request), m_entries(entries) {
    for (const Question& question : questions)
      m_open.emplace(question.index, State{question.superblock, std::nullopt, {}});
  }

  void listen(WorkingChild& child) {
    Deadline silent = deadline_in(m_request.deadline + k_silence);
    bool more = true;
    while (!m_open.empty() && more) {
      more = child.drain();
      if (take(child.result()))
        silent = deadline_in(m_request.deadline + k_silence);
      give_verdicts();
      if (Clock::now() >= silent)
        break;
      if (!m_open.empty() && more) {
        pollfd news{child.fd(), POLLIN, 0};
        ::poll(&news, 1, poll_time(std::min(silent, next_end())));
      }
    }
    if (more) // all is known, or what is not known hangs
      child.process().kill();
    const auto ended = child.finish();
    for (auto& [index, state] : m_open)
      give_up(index, ended || more ? hung(state) : ended.error());
  }

 private:
  struct State {
    std::uint64_t superblock;
    std::optional<Deadline> end; ///< once it is begun
    std::string step;            ///< that it is in
  };

  /// The whole frames that came since the last time. False: none.
  bool take(std::string_view bytes) {
    const Deadline end = deadline_in(m_request.deadline);
    bytes.remove_prefix(m_taken);
    WireReader reader(bytes);
    bool any = false;
    for (;;) {
      const auto bytes_of_frame = reader.text();
      if (!reader.ok())
        return any;
      m_taken += sizeof(std::uint64_t) + bytes_of_frame.size();
      any = true;
      WireReader frame(bytes_of_frame);
      const auto event = frame.get<Event>();
      WireReader values(frame.text());
      const auto open = m_open.find(values.get<std::size_t>());
      if (open == m_open.end())
        continue;
      if (event == Event::step) {
        open->second.end = open->second.end.value_or(end);
        open->second.step = values.text();
      }
      if (event == Event::answered) {
        auto entry = values.get<Entry>();
        if (values.ok())
          m_entries[open->first] = std::move(entry);
        m_open.erase(open);
      }
    }
  }

  [[nodiscard]] Deadline next_end() const {
    Deadline next = Deadline::max();
    for (const auto& [index, state] : m_open)
      next = std::min(next, state.end.value_or(Deadline::max()));
    return next;
  }

  /// A question whose time is over hangs, and with it every other on its superblock that could not begin.
  void give_verdicts() {
    std::map<std::uint64_t, Error> dead;
    const auto now = Clock::now();
    std::erase_if(m_open, [&](auto& open) {
      if (!open.second.end || now < *open.second.end)
        return false;
      give_up(open.first, hung(open.second));
      dead.emplace(open.second.superblock, hung(open.second));
      return true;
    });
    if (dead.empty())
      return;
    std::erase_if(m_open, [&](auto& open) {
      const auto verdict = dead.find(open.second.superblock);
      if (open.second.end || verdict == dead.end())
        return false;
      give_up(open.first, verdict->second);
      return true;
    });
  }

  [[nodiscard]] Error hung(const State& state) const {
    return {ErrorCode::timeout,
            "no answer" + (state.step.empty() ? "" : " to " + state.step) + " within " +
                format_duration(m_request.deadline / 1us),
            {},
            {}};
  }

  void give_up(std::size_t index, const Error& error) {
    Entry& entry = m_entries[index];
    entry.kind = EntryKind::unknown;
    entry.error_number = error.code == ErrorCode::timeout      ? ETIMEDOUT
                         : error.code == ErrorCode::permission ? EPERM
                                                               : EIO;
    entry.detail = error.message;
  }

  const EntryRequest& m_request;
  std::vector<Entry>& m_entries;
  std::map<std::size_t, State> m_open;
  std::size_t m_taken = 0;
};

void ask_child(const Files& files, const EntryRequest& request, const std::vector<Question>& questions,
               std::vector<Entry>& entries) {
  Listener listener(request, questions, entries);
  auto child = WorkingChild::start(request.as, [&](int fd) {
    const Fd root = files.open_root();
    Asker(request, questions, root.get(), fd).run();
    ::_exit(0); // before the last thread could find its mutex destroyed
  });
  if (child)
    return listener.listen(*child);
  for (const Question& question : questions) {
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
          (path.ends_with("/maps") || path.ends_with("/cmdline")));
}

} // namespace

std::vector<Entry> read_entries(const Files& files, const MountTable& mounts, const EntryRequest& request) {
  std::vector<Entry> entries(request.queries.size());
  std::vector<Question> questions;
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
      questions.push_back({index, ~std::uint64_t{0} - index});
      continue;
    }
    const MountEntry* owner = table ? table->owner_of(files.real_path(entry.resolved)) : nullptr;
    if (owner != nullptr && owner->fs_type == "autofs" && !query.automount)
      entry.detail = "looking would mount it";
    else
      questions.push_back({index, owner == nullptr ? 0 : (std::uint64_t{owner->major} << 32U) | owner->minor});
  }
  if (!questions.empty())
    ask_child(files, request, questions, entries);
  std::optional<TakeoversByTarget> takeovers; // read only where it matters
  for (Entry& entry : entries)
    locate(entry, files, mounts, takeovers);
  return entries;
}

} // namespace sharefs::sys
