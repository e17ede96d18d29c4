// fetch(): one thread reads the file, adds it to the checksum, and writes it. This file also has serve().
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/fs/files.hpp"
#include "sys/fs/sha256.hpp"
#include "sys/programs/process.hpp"
#include "tree/fault_injection.hpp"
#include "tree/job.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <thread>

namespace sharefs::tree {

namespace {

/// The part of Options::deadline that an upstream has for each block, so that several may be silent.
constexpr int k_upstream_share = 6;
constexpr std::uint64_t k_least = 4096; ///< bytes; fewer are no progress

class Fetcher {
 public:
  Fetcher(const Place& from, const Place& to, const FileContent& content, const Options& options,
          const std::vector<Upstream>& upstreams, const std::optional<FileAttributes>& given,
          const sys::ProgressCounters& counters)
      : m_from(from), m_to(to), m_content(content), m_upstreams(upstreams), m_given(given), m_job(options, counters) {}

  Result<FetchReport> run() {
    TRY_ASSIGN(auto target, walk_to(m_to));
    if (target.parent_missing)
      return fail(errno_error(ENOENT, parent_path(m_to.path)));
    m_directory = std::move(target.directory);
    m_name = target.name;
    TRY(open_part());
    if (const auto there = open_complete()) {
      ::unlinkat(m_directory.get(), part_name().c_str(), 0);
      return give(there.get()).map([&] { return FetchReport{.kept = m_content.bytes}; });
    }
    auto fetched = fetch_from_upstreams();
    if (!fetched && !m_target_error)
      fetched = fetch_from_original();
    if (fetched)
      if (const auto finished = finish(); !finished)
        fetched = fail(finished.error());
    struct stat status{};
    if (!fetched && ::fstat(m_part.get(), &status) == 0 && status.st_size == 0)
      ::unlinkat(m_directory.get(), part_name().c_str(), 0);
    return fetched.map([&](FetchReport report) {
      report.passed_over = m_passed_over;
      return report;
    });
  }

 private:
  [[nodiscard]] std::string part_name() const { return "." + m_name + ".part"; }

  /// Tries the upstreams in order. Each continues where the one before it has ended.
  Result<FetchReport> fetch_from_upstreams() {
    std::optional<std::uint64_t> kept;
    for (const auto& upstream : m_upstreams) {
      m_job.counters.add(k_steps); // to ask the next one is progress
      const auto fetched = fetch_rest([&] { return read_upstream(upstream); },
                                      {ErrorCode::conflict, "what it has sent has another checksum", "", ""});
      kept = kept.value_or(m_begin);
      if (fetched)
        return FetchReport{.bytes = m_at - std::min(*kept, m_at), .kept = *kept, .by = upstream.name};
      if (m_target_error)
        return fail(fetched.error());
      m_passed_over +=
          fmt::format("{}{}: {}", m_passed_over.empty() ? "" : "; ", upstream.name, fetched.error().message);
    }
    return fail(ErrorCode::not_found, "no upstream has it");
  }

  /// Reads what an upstream prints, up to the end of the file. An error is that of the upstream.
  Result<void> read_upstream(const Upstream& upstream) {
    sys::Command command;
    command.argv = upstream.argv;
    command.argv.push_back(std::to_string(m_at));
    command.as = upstream.as;
    command.ends_with_us = true;
    TRY_ASSIGN(const auto process, sys::StreamedProcess::start(command));
    const auto timeout = m_job.options.deadline / k_upstream_share;
    pollfd ready{process->out(), POLLIN, 0};
    while (m_at < m_content.bytes) {
      // The deadline is for a whole block, because a byte now and then is no progress.
      const auto end = sys::deadline_in(timeout);
      for (const auto block_end = std::min(m_at + k_least, m_content.bytes); m_at < block_end;) {
        const int count = ::poll(&ready, 1, sys::poll_time(end));
        const auto length = count <= 0 ? count : ::read(ready.fd, buffer().data(), buffer().size());
        if (length < 0 && errno == EINTR)
          continue;
        if (length <= 0)
          return fail(ErrorCode::failed,
                      end_of_upstream(*process, count == 0 ? timeout : std::chrono::milliseconds(0)));
        if (static_cast<std::uint64_t>(length) > m_content.bytes - m_at)
          return fail(ErrorCode::failed, "has sent more than the file has");
        if (!write_piece({buffer().data(), static_cast<std::size_t>(length)}))
          return {};
      }
    }
    return {};
  }

  /// Explains why the output of an upstream has ended; `silent`: for how long it has sent nothing, or 0.
  [[nodiscard]] std::string end_of_upstream(sys::StreamedProcess& process, std::chrono::milliseconds silent) const {
    constexpr std::size_t k_longest = 300;
    if (auto text = process.error_text().substr(0, k_longest); !text.empty())
      return text;
    if (silent.count() > 0)
      return fmt::format("has sent nothing, or next to nothing, for {}",
                         format_duration(silent / std::chrono::microseconds(1)));
    return fmt::format("has ended after {}", format_bytes(m_at - m_begin));
  }

  Result<FetchReport> fetch_from_original() {
    TRY(become_reader(m_job.options));
    TRY_ASSIGN(const auto original, open_original());
    const auto read = [&]() -> Result<void> {
      const int error =
          read_file(original.get(), m_at, m_content.bytes, [&](std::string_view piece) { return write_piece(piece); });
      return error == 0 ? Result<void>{} : fail(errno_error(error, m_from.path));
    };
    // After a power cut the part may contain a hole. Then the checksum differs, and the file is fetched from the
    // beginning.
    auto fetched = fetch_rest(read, other_content());
    if (!fetched && fetched.error().code == ErrorCode::conflict && m_begin > 0)
      fetched = fetch_rest(read, other_content());
    ::posix_fadvise(original.get(), 0, 0, POSIX_FADV_DONTNEED); // the cache is better used for the copy
    return fetched.map([&] { return FetchReport{m_at - m_begin, m_begin}; });
  }

  /// Opens the part and locks it, until this process ends.
  Result<void> open_part() {
    // The child of an interrupted command ends when its server answers, which may be a moment after the command's end.
    constexpr std::chrono::milliseconds k_least_wait{2000}, k_pause{50};
    const auto end = sys::deadline_in(std::max(m_job.options.wait, k_least_wait));
    constexpr int k_attempts = 8; // another fetch() may finish and rename the part between open(2) and flock(2)
    for (int attempt = 0; attempt < k_attempts; ++attempt) {
      m_part.reset(::openat(m_directory.get(), part_name().c_str(),
                            O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
      struct stat open{}, named{};
      if (!m_part || ::fstat(m_part.get(), &open) != 0)
        return fail(errno_error(errno, m_to.path));
      if (!S_ISREG(open.st_mode) || open.st_uid != ::geteuid())
        return fail(ErrorCode::conflict, join_path(parent_path(m_to.path), part_name()) + ": is not a file of ours",
                    "see what it is, and remove it");
      while (::flock(m_part.get(), LOCK_EX | LOCK_NB) != 0) {
        if (sys::Clock::now() >= end)
          return fail(ErrorCode::busy, m_to.path + ": another command copies it", "wait for its end");
        std::this_thread::sleep_for(k_pause);
      }
      if (::fstatat(m_directory.get(), part_name().c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
          named.st_ino == open.st_ino) {
        if (open.st_nlink == 1)
          return {};
        // The owner of a directory in a copy may have linked a file that lies elsewhere.
        if (::unlinkat(m_directory.get(), part_name().c_str(), 0) != 0)
          return fail(errno_error(errno, m_to.path));
      }
    }
    return fail(ErrorCode::busy, m_to.path + ": others copy it");
  }

  /// Opens the file if it exists already with the right content, and belongs to its final owner, or to this user and
  /// has no second name: that of a file elsewhere must not be given away.
  sys::Fd open_complete() {
    auto there = sys::open_below(m_directory.get(), m_name.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
    struct stat status{};
    const auto owner = m_given && m_given->uid != k_as_it_is ? m_given->uid : ::geteuid();
    const bool is_complete = there && ::fstat(there.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                             (status.st_uid == owner || (status.st_uid == ::geteuid() && status.st_nlink == 1)) &&
                             static_cast<std::uint64_t>(status.st_size) == m_content.bytes &&
                             add_local(there.get(), m_content.bytes) && m_hash->hex() == m_content.sha256;
    return is_complete ? std::move(there) : sys::Fd();
  }

  /// Gives the complete file its attributes. This comes last, because its owner may then write into it.
  [[nodiscard]] Result<void> give(int file) const {
    if (!m_given)
      return {};
    const timespec time{.tv_sec = m_given->mtime, .tv_nsec = 0};
    const std::array<timespec, 2> times{time, time};
    const bool given = ::fchown(file, m_given->uid, m_given->gid) == 0 && ::fchmod(file, m_given->mode & 0777U) == 0 &&
                       ::futimens(file, times.data()) == 0 && ::fsync(file) == 0;
    return given ? Result<void>{} : fail(errno_error(errno, m_to.path));
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
    return file;
  }

  [[nodiscard]] Error other_content() const {
    return {ErrorCode::conflict,
            fmt::format("{}: its content is not the one that is noted of it ({}, sha256 {})", m_from.path,
                        format_bytes(m_content.bytes), m_content.sha256.substr(0, 16)),
            m_job.options.anew.empty()
                ? "nothing of it is used; it is damaged, or somebody has changed it: have it made anew"
                : m_job.options.anew,
            ""};
  }

  /// Adds the first `size` bytes of a file of this host to a new checksum. False: it could not be read.
  bool add_local(int file, std::uint64_t size) {
    m_hash.emplace();
    std::uint64_t read = 0;
    const int error = read_file(file, 0, size, [&](std::string_view piece) {
      m_hash->add(piece);
      m_job.counters.add(k_steps);
      read += piece.size();
      return true;
    });
    return error == 0 && read == size;
  }

  /// Writes the rest of the file, which `read` passes on to write_piece(). If the content is not the wanted one, the
  /// part is emptied, and the error is `wrong`.
  Result<void> fetch_rest(const std::function<Result<void>()>& read, const Error& wrong) {
    struct stat status{};
    if (::fstat(m_part.get(), &status) != 0)
      return fail(target_error(errno));
    m_begin = m_at = std::min(static_cast<std::uint64_t>(status.st_size), m_content.bytes);
    if (!add_local(m_part.get(), m_at))
      m_begin = m_at = 0, m_hash.emplace();
    m_writer.emplace(m_part.get(), m_at);
    if (::ftruncate(m_part.get(), static_cast<off_t>(m_at)) != 0)
      return fail(target_error(errno));
    m_job.counters.set(k_bytes, m_at);
    // A full disk is noticed now, if the file system supports this call.
    if (::fallocate(m_part.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(m_content.bytes)) != 0 && is_full(errno))
      return fail(target_error(errno));
    const auto done = read();
    if (m_target_error)
      return fail(*m_target_error);
    TRY(done);
    return m_hash->hex() == m_content.sha256 ? Result<void>{} : fail(discard_part(wrong));
  }

  static bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

  /// Returns the error of this host's disk, with which no other source can help. If it is full, the part is emptied,
  /// because others need its space now.
  Error target_error(int error) {
    m_target_error =
        is_full(error)
            ? discard_part(errno_error(error, m_to.path, "make room there (`df -h`), then run the command again"))
            : errno_error(error, m_to.path);
    return *m_target_error;
  }

  /// Empties the part, which run() then removes unless a further attempt has used it. Returns the error unchanged.
  Error discard_part(Error error) {
    [[maybe_unused]] const int emptied = ::ftruncate(m_part.get(), 0);
    return error;
  }

  /// Adds a piece to the checksum and to the part. False: this host's disk has refused it.
  bool write_piece(std::string_view piece) {
    m_hash->add(piece);
    m_job.wait_for(piece.size());
    may_be_killed();
    if (const int error = m_writer->write(piece, m_at); error != 0) {
      target_error(error);
      return false;
    }
    m_at += piece.size();
    m_job.counters.add(k_bytes, piece.size());
    return true;
  }

  Result<void> finish() {
    may_be_killed();
    // After an error the pages that are not on the disk count as clean (fsync(2)): the next fetch() would find them
    // right in the page cache, so the part is not continued.
    if (const int error = ::fsync(m_part.get()) == 0 ? 0 : errno; error != 0)
      return fail(is_full(error) ? target_error(error) : discard_part(target_error(error)));
    may_be_killed();
    if (::renameat(m_directory.get(), part_name().c_str(), m_directory.get(), m_name.c_str()) != 0)
      return fail(errno_error(errno, m_to.path));
    may_be_killed();
    TRY(give(m_part.get()));
    return sys::sync_directory(m_directory.get(), m_to.path);
  }

  const Place& m_from;
  const Place& m_to;
  const FileContent& m_content;
  const std::vector<Upstream>& m_upstreams;
  const std::optional<FileAttributes>& m_given;
  std::string m_passed_over;
  std::optional<Error> m_target_error; ///< of this host's disk
  Job m_job;
  sys::Fd m_directory, m_part;
  std::string m_name;
  std::optional<sys::Sha256> m_hash;
  std::optional<FlushingWriter> m_writer;
  std::uint64_t m_begin = 0, m_at = 0; ///< offsets in the part: where this source began, the end of the written data
};

} // namespace

Result<FetchReport> fetch(const Place& from, const Place& to, const FileContent& content, const Options& options,
                          const OnProgress& progress, const std::vector<Upstream>& upstreams,
                          const std::optional<FileAttributes>& given) {
  auto all = options;
  all.total_files = 0;
  all.total_bytes = content.bytes;
  return watched(from.path, all, progress, [&](const sys::ProgressCounters& counters) {
    return Fetcher(from, to, content, all, upstreams, given, counters).run();
  });
}

Result<void> serve(const Place& file, std::uint64_t bytes, std::uint64_t offset, int out,
                   std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds k_poll_interval{20};
  TRY_ASSIGN(const auto walked, walk_to(file));
  const auto& directory = walked.directory;
  const auto part = "." + walked.name + ".part";
  sys::Fd open;
  for (auto end = sys::deadline_in(timeout); offset < bytes;) {
    struct stat status{};
    for (const auto& name : {walked.name, part}) // the complete file is tried first: fetch() renames the part to it
      if (!open)
        open.reset(::openat(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (open && (::fstat(open.get(), &status) != 0 || !S_ISREG(status.st_mode)))
      return fail(ErrorCode::not_found, file.path + ": is no file");
    const auto there = std::min(static_cast<std::uint64_t>(status.st_size), bytes);
    if (there <= offset) {
      if (sys::Clock::now() >= end)
        return fail(open ? ErrorCode::timeout : ErrorCode::not_found,
                    file.path + (open ? ": nothing more has come" : ": is not there"));
      std::this_thread::sleep_for(k_poll_interval); // NOLINT: inotify does not report the death of the writer either
      continue;
    }
    const auto piece = buffer().first(std::min<std::uint64_t>(there - offset, buffer().size()));
    const auto length = ::pread(open.get(), piece.data(), piece.size(), static_cast<off_t>(offset));
    if (length == 0) // the part has been truncated since its size was read
      continue;
    if (length < 0 || !sys::write_all(out, {piece.data(), static_cast<std::size_t>(length)}))
      return fail(errno_error(errno, file.path));
    offset += static_cast<std::uint64_t>(length);
    end = sys::deadline_in(timeout);
  }
  return {};
}

} // namespace sharefs::tree
