// fetch(): one thread takes the pieces (pieces.hpp) in order, adds them to the checksum, and writes them. This file
// also has serve().
#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/fs/file_identity.hpp"
#include "sys/fs/files.hpp"
#include "sys/fs/sha256.hpp"
#include "sys/programs/process.hpp"
#include "tree/fault_injection.hpp"
#include "tree/job.hpp"
#include "tree/pieces.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>
#include <sys/file.h>
#include <thread>

namespace sharefs::tree {

namespace {

/// The number of bytes that are written and counted at a time, see Options::bytes_per_second.
constexpr std::size_t k_step = 1U << 20U;

/// The part of Options::deadline that an upstream has for each block, so that several may be silent.
constexpr int k_upstream_share = 6;

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
    if (!fetched && !m_target_failed)
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
    std::uint64_t kept = 0;
    for (const auto& upstream : m_upstreams) {
      m_job.counters.add(k_steps); // to ask the next one is progress
      std::string program_error;
      const auto make = [&](std::uint64_t offset) -> Result<std::unique_ptr<Pieces>> {
        sys::Command command;
        command.argv = upstream.argv;
        command.argv.push_back(std::to_string(offset));
        command.as = upstream.as;
        command.ends_with_us = true;
        TRY_ASSIGN(auto process, sys::StreamedProcess::start(command));
        return read_program(std::move(process), m_content.bytes - offset, least_of_upstream(),
                            m_job.options.deadline / k_upstream_share);
      };
      auto fetched = fetch_rest(make, &program_error);
      if (&upstream == &m_upstreams.front())
        kept = m_begin;
      if (fetched)
        return FetchReport{.bytes = m_at - std::min(kept, m_at), .kept = kept, .by = upstream.name, .passed_over = {}};
      if (m_target_failed)
        return fetched;
      m_passed_over += fmt::format("{}{}: {}", m_passed_over.empty() ? "" : "; ", upstream.name,
                                   program_error.empty() ? fetched.error().message : program_error);
    }
    return fail(ErrorCode::not_found, "no upstream has it");
  }

  /// Returns the bytes that an upstream has to send in its share of the deadline. The share is behind it, so it must
  /// not be much slower than any disk or network; half of the limit, which holds for the upstream, too, is enough.
  [[nodiscard]] std::uint64_t least_of_upstream() const {
    constexpr std::uint64_t k_least_per_second = 52'000, k_thousand = 1000; // about 1 MiB in 20 seconds
    const auto limit = m_job.options.bytes_per_second;
    const auto rate = limit == 0 ? k_least_per_second : std::min(k_least_per_second, limit / 2);
    const auto time = static_cast<std::uint64_t>((m_job.options.deadline / k_upstream_share).count());
    return std::max<std::uint64_t>(k_alignment, rate * time / k_thousand);
  }

  Result<FetchReport> fetch_from_original() {
    TRY(become_reader(m_job.options));
    TRY_ASSIGN(const auto original, open_original());
    const auto make = [&](std::uint64_t offset) -> Result<std::unique_ptr<Pieces>> {
      return read_original(original.get(), offset, m_content.bytes);
    };
    // After a power cut the part may contain a hole. Then the checksum differs, and the file is fetched from the
    // beginning.
    auto fetched = fetch_rest(make);
    if (!fetched && fetched.error().code == ErrorCode::conflict && m_begin > 0)
      fetched = fetch_rest(make);
    return fetched;
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
        if (errno != EWOULDBLOCK && errno != EINTR) // a file system without locks
          return fail(errno_error(errno, join_path(parent_path(m_to.path), part_name()) + ": cannot be locked"));
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
    ::fcntl(file->get(), F_SETFL, O_DIRECT); // an error is ignored: not all file systems support it
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

  /// Makes the reader of the rest of the file, from an offset on.
  using MakePieces = std::function<Result<std::unique_ptr<Pieces>>(std::uint64_t offset)>;

  /// Writes the rest of the file. Error `conflict`: the content is not the wanted one, and the part was emptied. If a
  /// program's output ends early, the part keeps the bytes so far, and `program_error` gets the program's message.
  Result<FetchReport> fetch_rest(const MakePieces& make, std::string* program_error = nullptr) {
    struct stat status{};
    if (::fstat(m_part.get(), &status) != 0)
      return fail(target_error(errno));
    const auto there = std::min(static_cast<std::uint64_t>(status.st_size), m_content.bytes);
    m_begin = m_at = there - there % k_alignment;
    if (!add_local(m_part.get(), m_at))
      m_begin = m_at = 0, m_hash.emplace();
    m_writer.emplace(m_part.get(), m_at);
    if (::ftruncate(m_part.get(), static_cast<off_t>(m_at)) != 0)
      return fail(target_error(errno));
    m_job.counters.set(k_bytes, m_at);
    // A full disk is noticed now, if the file system supports this call.
    if (::fallocate(m_part.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(m_content.bytes)) != 0 && is_full(errno))
      return fail(target_error(errno));
    TRY_ASSIGN(const auto reader, make(m_at));
    while (m_at < m_content.bytes) {
      bool of_target = false;
      const int error = reader->next([&](std::string_view piece) {
        of_target = true;
        return write_piece(piece);
      });
      if (error == ENODATA && program_error != nullptr) {
        *program_error = reader->error_text();
        return fail(ErrorCode::failed, fmt::format("has ended after {}", format_bytes(m_at - m_begin)));
      }
      if (error == EFBIG && program_error != nullptr && !of_target)
        return fail(ErrorCode::failed, "has sent more than the file has");
      if (error == ENODATA)
        return fail(discard_part(other_content()));
      if (error != 0)
        return fail(of_target ? target_error(error) : errno_error(error, m_from.path));
    }
    if (m_hash->hex() != m_content.sha256)
      return fail(discard_part(program_error == nullptr
                                   ? other_content()
                                   : Error{ErrorCode::conflict, "what it has sent has another checksum", "", ""}));
    return FetchReport{m_at - m_begin, m_begin};
  }

  static bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

  /// Returns the error of this host's disk, with which no other source can help. If it is full, the part is emptied,
  /// because others need its space now.
  Error target_error(int error) {
    m_target_failed = true;
    auto failed = errno_error(error, m_to.path);
    return is_full(error) ? discard_part(std::move(failed)) : failed;
  }

  /// Empties the part, which run() then removes unless a further attempt has used it. Returns the error unchanged.
  Error discard_part(Error error) {
    [[maybe_unused]] const int emptied = ::ftruncate(m_part.get(), 0);
    return error;
  }

  /// Returns 0 or errno.
  int write_piece(std::string_view piece) {
    int error = 0;
    for (; error == 0 && !piece.empty(); piece.remove_prefix(std::min(piece.size(), k_step)))
      error = write_step(piece.substr(0, k_step));
    return error;
  }

  int write_step(std::string_view piece) {
    m_hash->add(piece);
    m_job.wait_for(piece.size());
    may_be_killed();
    if (const int error = m_writer->write(piece, m_at); error != 0)
      return error;
    m_at += piece.size();
    m_job.counters.add(k_bytes, piece.size());
    return 0;
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
  bool m_target_failed = false;
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

Result<void> give_link(const Place& link, std::uint32_t uid, std::uint32_t gid) {
  return watched(link.path, {}, {}, [&](const sys::ProgressCounters&) -> Result<void> {
    TRY_ASSIGN(const auto found, walk_to(link));
    // The owner of a directory in an earlier copy may have given the name to a link that lies elsewhere.
    if (!found.is_link() || found.status.st_nlink != 1)
      return fail(sys::conflict_error(link.path, "the link that was made", found.text()));
    return ::fchownat(found.fd.get(), "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) == 0
               ? Result<void>{}
               : fail(errno_error(errno, link.path));
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
