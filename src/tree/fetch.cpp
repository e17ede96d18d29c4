// fetch(): one thread takes pieces (pieces.hpp) in their order, adds them to the checksum, and writes them. And
// serve().
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/fs/files.hpp"
#include "sys/fs/sha256.hpp"
#include "sys/programs/process.hpp"
#include "tree/fault_injection.hpp"
#include "tree/job.hpp"
#include "tree/pieces.hpp"
#include "tree/survey.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <sys/file.h>
#include <thread>

namespace sharefs::tree {

namespace {

/// Written, counted and waited for at a time, see Options::bytes_per_second.
constexpr std::size_t k_step = 1U << 20U;
/// After this many bytes the file is sent to the disk, so that the fsync at the end does not wait for all of it.
constexpr std::uint64_t k_sent_at_once = 16U << 20U;
/// Owner, mode and time that a file gets; without, it is this user's alone.
struct Given {
  std::uint32_t uid = 0, gid = 0, mode = 0600;
  std::int64_t mtime = 0;
};

class Fetcher {
 public:
  Fetcher(const Place& from, const Place& to, const FileContent& content, const Options& options,
          const std::vector<Upstream>& upstreams, const std::optional<Given>& given,
          const sys::ProgressCounters& counters)
      : m_from(from), m_to(to), m_content(content), m_upstreams(upstreams), m_given(given), m_job(options, counters) {}

  Result<FetchReport> run() {
    TRY_ASSIGN(auto target, walk_to(m_to));
    if (target.parent_missing)
      return fail(errno_error(ENOENT, parent_path(m_to.path)));
    m_directory = std::move(target.directory);
    m_name = target.name;
    TRY(open_part());
    if (is_right_already()) {
      ::unlinkat(m_directory.get(), part_name().c_str(), 0);
      return FetchReport{.kept = m_content.bytes};
    }
    auto fetched = from_upstreams();
    if (!fetched)
      fetched = from_original();
    if (!fetched)
      return fail(fetched.error());
    fetched->passed_over = m_passed_over;
    return finish().map([&] { return *fetched; });
  }

 private:
  [[nodiscard]] std::string part_name() const { return "." + m_name + ".part"; }

  /// What one brings counts for the next, which goes on where it has ended.
  Result<FetchReport> from_upstreams() {
    std::uint64_t kept = 0;
    for (const auto& upstream : m_upstreams) {
      std::string said;
      const auto make = [&](std::uint64_t offset) -> Result<std::unique_ptr<Pieces>> {
        sys::Command command;
        command.argv = upstream.argv;
        command.argv.push_back(std::to_string(offset));
        command.as = upstream.as;
        TRY_ASSIGN(auto process, sys::StreamedProcess::start(command));
        return read_program(std::move(process), m_content.bytes - offset);
      };
      auto fetched = go_on(make, &said);
      if (&upstream == &m_upstreams.front())
        kept = m_begin;
      if (fetched)
        return FetchReport{.bytes = m_at - std::min(kept, m_at), .kept = kept, .by = upstream.name, .passed_over = {}};
      m_passed_over += fmt::format("{}{}: {}", m_passed_over.empty() ? "" : "; ", upstream.name,
                                   said.empty() ? fetched.error().message : said);
    }
    return fail(ErrorCode::not_found, "no upstream has it");
  }

  Result<FetchReport> from_original() {
    m_is_last = true;
    TRY(become_reader(m_job.options));
    TRY_ASSIGN(const auto original, open_original());
    const auto make = [&](std::uint64_t offset) -> Result<std::unique_ptr<Pieces>> {
      return read_original(original.get(), offset, m_content.bytes);
    };
    // What a power cut has left may have a hole in it: then once more, from the beginning.
    auto fetched = go_on(make);
    if (!fetched && fetched.error().code == ErrorCode::conflict && m_begin > 0)
      fetched = go_on(make);
    return fetched;
  }

  /// Held by its lock, until this process ends.
  Result<void> open_part() {
    // One that was interrupted ends once its server answers, which may be a moment after its command has ended.
    constexpr std::chrono::milliseconds k_least_wait{2000}, k_pause{50};
    const auto end = sys::deadline_in(std::max(m_job.options.wait, k_least_wait));
    constexpr int k_attempts = 8; // another fetch() may have finished, and given it its name, between two calls
    for (int attempt = 0; attempt < k_attempts; ++attempt) {
      m_part.reset(::openat(m_directory.get(), part_name().c_str(),
                            O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
      struct stat open{}, named{};
      if (!m_part || ::fstat(m_part.get(), &open) != 0)
        return fail(errno_error(errno, m_to.path));
      // Given away by one that was killed before it got its name. Whoever has it since may have written into it.
      if (m_given && open.st_uid == m_given->uid && open.st_uid != ::geteuid()) {
        if (::unlinkat(m_directory.get(), part_name().c_str(), 0) != 0 && errno != ENOENT)
          return fail(errno_error(errno, m_to.path));
        continue;
      }
      if (!S_ISREG(open.st_mode) || open.st_uid != ::geteuid())
        return fail(ErrorCode::conflict, join_path(parent_path(m_to.path), part_name()) + ": is not a file of ours",
                    "see what it is, and remove it");
      while (::flock(m_part.get(), LOCK_EX | LOCK_NB) != 0) {
        if (sys::Clock::now() >= end)
          return fail(ErrorCode::busy, m_to.path + ": another command copies it", "wait for its end");
        std::this_thread::sleep_for(k_pause);
      }
      if (::fstatat(m_directory.get(), part_name().c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
          named.st_ino == open.st_ino)
        return {};
    }
    return fail(ErrorCode::busy, m_to.path + ": others copy it");
  }

  bool is_right_already() {
    const auto there = sys::open_below(m_directory.get(), m_name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat status{};
    const auto& given = m_given;
    const auto owner = given && given->uid != k_as_it_is ? given->uid : ::geteuid();
    return there && ::fstat(there.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == owner &&
           static_cast<std::uint64_t>(status.st_size) == m_content.bytes && add_local(there.get(), m_content.bytes) &&
           m_hash->hex() == m_content.sha256;
  }

  Result<sys::Fd> open_original() {
    auto file = open_file(m_from);
    struct stat status{};
    if (file && ::fstat(file->get(), &status) != 0)
      file = fail(errno_error(errno, m_from.path));
    if (!file)
      return file;
    if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != m_content.bytes)
      return fail(other_content());
    ::fcntl(file->get(), F_SETFL, O_DIRECT); // where it can do that
    return file;
  }

  [[nodiscard]] Error other_content() const {
    return {ErrorCode::conflict,
            fmt::format("{}: its content is not the one that is noted of it ({}, sha256 {})", m_from.path,
                        format_bytes(m_content.bytes), m_content.sha256.substr(0, 16)),
            "nothing of it is used; it is damaged, or somebody has changed it: have it made anew", ""};
  }

  /// Adds the first `size` bytes of a file of this host to a new checksum. False: it could not be read.
  bool add_local(int file, std::uint64_t size) {
    m_hash.emplace();
    std::uint64_t read = 0;
    const int error = read_file(file, size, [&](std::string_view piece) {
      m_hash->add(piece);
      m_job.counters.add(k_steps);
      read += piece.size();
      return true;
    });
    return error == 0 && read == size;
  }

  /// What has the rest of the file, from an offset on.
  using MakePieces = std::function<Result<std::unique_ptr<Pieces>>(std::uint64_t offset)>;

  /// Writes what is not there yet. `conflict`: it is not the wanted content, and the part is empty again. A stream that
  /// ends early, where `said` is given for what its program says, leaves what has come.
  Result<FetchReport> go_on(const MakePieces& make, std::string* said = nullptr) {
    struct stat status{};
    if (::fstat(m_part.get(), &status) != 0)
      return fail(errno_error(errno, m_to.path));
    const auto there = std::min(static_cast<std::uint64_t>(status.st_size), m_content.bytes);
    m_begin = m_at = m_sent = there - there % k_alignment;
    if (!add_local(m_part.get(), m_at))
      m_begin = m_at = m_sent = 0, m_hash.emplace();
    if (::ftruncate(m_part.get(), static_cast<off_t>(m_at)) != 0)
      return fail(errno_error(errno, m_to.path));
    m_job.counters.set(k_bytes, m_at);
    // A disk that has no room says so now. Not every file system can say it.
    if (::fallocate(m_part.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(m_content.bytes)) != 0 && is_full(errno))
      return fail(no_room(errno));
    TRY_ASSIGN(const auto reader, make(m_at));
    while (m_at < m_content.bytes) {
      bool of_target = false;
      const int error = reader->next([&](std::string_view piece) {
        of_target = true;
        return take(piece);
      });
      if (error == ENODATA && said != nullptr) {
        *said = reader->error_text();
        return fail(ErrorCode::failed, fmt::format("has ended after {}", format_bytes(m_at - m_begin)));
      }
      if (error == ENODATA)
        return fail(clear(other_content()));
      if (error != 0)
        return fail(!of_target       ? errno_error(error, m_from.path)
                    : is_full(error) ? no_room(error)
                                     : errno_error(error, m_to.path));
    }
    if (m_hash->hex() != m_content.sha256)
      return fail(clear(other_content()));
    return FetchReport{m_at - m_begin, m_begin};
  }

  static bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

  /// The disk is full: what would be left of it is what others need now.
  Error no_room(int error) {
    return clear(errno_error(error, m_to.path, "make room there (`df -h`), then run the command again"));
  }

  Error clear(Error error) {
    if (::ftruncate(m_part.get(), 0) == 0 && m_is_last && (m_begin == 0 || error.code != ErrorCode::conflict))
      ::unlinkat(m_directory.get(), part_name().c_str(), 0);
    return error;
  }

  /// 0 or errno.
  int take(std::string_view piece) {
    int error = 0;
    for (; error == 0 && !piece.empty(); piece.remove_prefix(std::min(piece.size(), k_step)))
      error = take_step(piece.substr(0, k_step));
    return error;
  }

  int take_step(std::string_view piece) {
    m_hash->add(piece);
    m_job.wait_for(piece.size());
    may_be_killed();
    for (std::size_t done = 0; done < piece.size();) {
      const ssize_t count =
          ::pwrite(m_part.get(), piece.data() + done, piece.size() - done, static_cast<off_t>(m_at + done));
      if (count < 0 && errno == EINTR)
        continue;
      if (count <= 0)
        return count == 0 ? EIO : errno;
      done += static_cast<std::size_t>(count);
    }
    m_at += piece.size();
    m_job.counters.add(k_bytes, piece.size());
    if (m_at >= m_sent + k_sent_at_once) {
      ::sync_file_range(m_part.get(), static_cast<off_t>(m_sent), static_cast<off_t>(m_at - m_sent),
                        SYNC_FILE_RANGE_WRITE);
      m_sent = m_at;
    }
    return 0;
  }

  Result<void> finish() {
    may_be_killed();
    if (const auto& given = m_given) {
      const std::array<timespec, 2> times{timespec{.tv_sec = given->mtime, .tv_nsec = 0},
                                          timespec{.tv_sec = given->mtime, .tv_nsec = 0}};
      const int part = m_part.get();
      if (::fchown(part, given->uid, given->gid) != 0 || ::fchmod(part, given->mode & 0777U) != 0 ||
          ::futimens(part, times.data()) != 0)
        return fail(errno_error(errno, m_to.path));
    }
    if (::fsync(m_part.get()) != 0)
      return fail(is_full(errno) ? no_room(errno) : errno_error(errno, m_to.path));
    may_be_killed();
    if (::renameat(m_directory.get(), part_name().c_str(), m_directory.get(), m_name.c_str()) != 0)
      return fail(errno_error(errno, m_to.path));
    may_be_killed();
    return sys::sync_directory(m_directory.get(), m_to.path);
  }

  const Place& m_from;
  const Place& m_to;
  const FileContent& m_content;
  const std::vector<Upstream>& m_upstreams;
  const std::optional<Given>& m_given;
  std::string m_passed_over;
  bool m_is_last = false; ///< nobody else is asked after this one: what cannot be used is taken away
  Job m_job;
  sys::Fd m_directory, m_part;
  std::string m_name;
  std::optional<sys::Sha256> m_hash;
  std::uint64_t m_begin = 0, m_at = 0, m_sent = 0; ///< of the part: what was there, is there, and is on its way
};

Result<FetchReport> fetch_as(const Place& from, const Place& to, const FileContent& content,
                             const std::optional<Given>& given, const Options& options, const OnProgress& progress,
                             const std::vector<Upstream>& upstreams) {
  auto all = options;
  all.total_files = 0;
  all.total_bytes = content.bytes;
  return watched(from.path, all, progress, [&](const sys::ProgressCounters& counters) {
    return Fetcher(from, to, content, all, upstreams, given, counters).run();
  });
}

} // namespace

Result<FetchReport> fetch(const Place& from, const Place& to, const FileContent& content, const Options& options,
                          const OnProgress& progress, const std::vector<Upstream>& upstreams) {
  return fetch_as(from, to, content, std::nullopt, options, progress, upstreams);
}

Result<FetchReport> fetch_listed(const Place& from, const Place& to, const Listing& listing, const Listed& file,
                                 const Options& options, const OnProgress& progress,
                                 const std::vector<Upstream>& upstreams) {
  const bool gives = ::geteuid() == 0; // only root can give a file away
  const Given given{gives ? listing.uid : k_as_it_is, gives ? listing.gid : k_as_it_is, file.mode, file.mtime};
  return fetch_as(from, to, {file.sha256, file.bytes}, given, options, progress, upstreams);
}

Result<void> serve(const Place& file, std::uint64_t bytes, std::uint64_t offset, int out,
                   std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds k_look{20};
  TRY_ASSIGN(const auto walked, walk_to(file));
  const auto& directory = walked.directory;
  const auto part = "." + walked.name + ".part";
  sys::Fd open;
  for (auto end = sys::deadline_in(patience); offset < bytes;) {
    struct stat status{};
    for (const auto& name : {walked.name, part}) // one that is complete loses its other name
      if (!open)
        open.reset(::openat(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (open && (::fstat(open.get(), &status) != 0 || !S_ISREG(status.st_mode)))
      return fail(ErrorCode::not_found, file.path + ": is no file");
    const auto there = std::min(static_cast<std::uint64_t>(status.st_size), bytes);
    if (there <= offset) {
      if (sys::Clock::now() >= end)
        return fail(open ? ErrorCode::timeout : ErrorCode::not_found,
                    file.path + (open ? ": nothing more has come" : ": is not there"));
      std::this_thread::sleep_for(k_look); // NOLINT: inotify would not say when the other process is killed either
      continue;
    }
    const auto piece = buffer().first(std::min<std::uint64_t>(there - offset, buffer().size()));
    const auto length = ::pread(open.get(), piece.data(), piece.size(), static_cast<off_t>(offset));
    if (length <= 0 || !sys::write_all(out, {piece.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))}))
      return fail(errno_error(errno, file.path));
    offset += static_cast<std::uint64_t>(length);
    end = sys::deadline_in(patience);
  }
  return {};
}

} // namespace sharefs::tree
