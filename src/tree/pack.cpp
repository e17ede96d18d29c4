#include "tree/pack.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "sys/fs/files.hpp"
#include "sys/programs/process.hpp"
#include "tree/job.hpp"
#include "tree/tar_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fmt/format.h>
#include <future>
#include <unordered_map>

namespace sharefs::tree {

namespace {

/// Files of up to `k_small` bytes are read ahead by several threads, because each takes one or two round trips to a
/// server.
constexpr std::uint64_t k_small = 1U << 20U, k_ahead_bytes = 32U << 20U;
constexpr std::size_t k_ahead_files = 1024;
constexpr std::size_t k_head = 16;
constexpr std::uint64_t k_most_pairs = 100'000'000; ///< comparing so many pairs of files takes seconds

constexpr std::string_view k_magic = "hsqs"; // fs/squashfs/squashfs_fs.h of the kernel

/// Entries that are read ahead, in order, with the contents of the small files among them. The memory of the contents
/// is reused, because new memory costs more than copying into it.
struct Batch {
  struct Content {
    std::string bytes; ///< one more than expected if the file has grown
    int error = 0;     ///< errno of reading
  };
  std::size_t begin = 0, end = 0;
  std::vector<Content> contents;
};

/// Returns the error of mksquashfs, if it has one.
Result<void> check_squashfs(const Result<sys::Completed>& done) {
  if (!done && done.error().code == ErrorCode::not_found)
    return fail(ErrorCode::unsupported, "mksquashfs is not installed", "`apt install squashfs-tools`");
  TRY(done);
  if (done->ok())
    return {};
  const std::string_view output = trim(done->err.empty() ? done->out : done->err);
  const auto first = std::string(output.substr(0, output.find('\n'))); // a list of options may follow
  if (first.find("\"zstd\"") != std::string::npos)
    return fail(ErrorCode::unsupported, "this mksquashfs has no zstd", "squashfs-tools 4.5 and newer have");
  return fail(ErrorCode::failed, fmt::format("mksquashfs ended with {}: {}", done->exit_code, first));
}

class Packer {
 public:
  Packer(const Packing& packing, const sys::ProgressCounters& counters) : m_packing(packing), m_counters(counters) {}

  Result<Packed> run() {
    TRY_ASSIGN(auto tree, Reader::open(m_packing.tree, m_counters));
    m_tree.emplace(std::move(tree));
    TRY(list());
    find_near();
    TRY_ASSIGN(const auto directory, find_tree({.path = parent_path(m_packing.file), .root = m_packing.tree.root}));
    const auto name = base_name(m_packing.file);
    const sys::Fd image(::openat(directory.fd.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                 S_IRUSR | S_IWUSR));
    if (!image)
      return fail(errno_error(errno, m_packing.file));
    auto packed = make(image);
    if (packed)
      if (auto synced = sys::sync_directory(directory.fd.get(), parent_path(m_packing.file)); !synced)
        packed = fail(synced.error());
    if (!packed)
      ::unlinkat(directory.fd.get(), name.c_str(), 0);
    return packed;
  }

 private:
  Result<void> list() {
    TRY_ASSIGN(m_entries, list_packable(*m_tree, m_packing.tree));
    for (const auto& added : m_packing.added)
      if (find(added.path) == nullptr && find(parent_path(added.path)) != nullptr)
        m_added.push_back({.path = added.path,
                           .mode = S_IFREG | 0444U,
                           .size = added.text.size(),
                           .mtime = m_tree->status().st_mtime});
    return {};
  }

  [[nodiscard]] static const Entry* find(const std::vector<Entry>& entries, const std::string& path) {
    const auto found = std::ranges::lower_bound(entries, path, {}, &Entry::path);
    return found != entries.end() && found->path == path ? &*found : nullptr;
  }
  [[nodiscard]] const Entry* find(const std::string& path) const { return find(m_entries, path); }

  /// Finds the files that are read from the tree Packing::near. If that tree cannot be read, it is not used.
  void find_near() {
    m_near_entries.assign(m_entries.size(), nullptr);
    const auto listed = [&](const std::string& path, std::optional<Reader>& reader) {
      if (auto opened = Reader::open(Place{.path = path, .root = m_packing.tree.root}, m_counters))
        reader.emplace(std::move(*opened));
      auto entries = reader ? reader->list() : Result<std::vector<Entry>>(std::vector<Entry>{});
      return entries ? std::move(*entries) : std::vector<Entry>{};
    };
    if (m_packing.near.empty())
      return;
    m_near_list = listed(m_packing.near, m_near);
    std::optional<Reader> of;
    const auto near_of = m_packing.near_of.empty() ? std::vector<Entry>{} : listed(m_packing.near_of, of);
    for (std::size_t at = 0; at < m_entries.size(); ++at) {
      const auto& entry = m_entries[at];
      const auto* there = find(m_near_list, entry.path);
      const auto* original = m_packing.near_of.empty() ? &entry : find(near_of, entry.path);
      if (S_ISREG(entry.mode) && there != nullptr && S_ISREG(there->mode) && original != nullptr &&
          there->size == entry.size && there->mtime == entry.mtime && original->inode == entry.inode &&
          original->device == entry.device)
        m_near_entries[at] = there;
    }
  }

  /// Counts the pairs of files with the same size, which mksquashfs compares to store equal files once.
  [[nodiscard]] std::uint64_t count_pairs_of_one_size() const {
    std::unordered_map<std::uint64_t, std::uint64_t> counts;
    std::uint64_t pairs = 0;
    for (const auto& entry : m_entries)
      if (S_ISREG(entry.mode))
        pairs += counts[entry.size]++;
    return pairs;
  }

  /// Returns the command that makes the image, from its standard input to an open file. It does not get the file's
  /// path, because others who may rename in the directory could replace the name by a link to another file of this
  /// user.
  [[nodiscard]] sys::Command squashfs_command(int file, int input) const {
    const auto& tree = m_tree->status();
    sys::Command command;
    command.argv = split_words(
        fmt::format("mksquashfs - {} -tar -noappend -no-progress -quiet -comp zstd -Xcompression-level 3 -mem 256M "
                    "-mkfs-time {} -root-mode {:o} -force-uid {} -force-gid {} -root-time {}",
                    sys::k_handed_on, m_packing.made, tree.st_mode & 07777U, tree.st_uid, tree.st_gid, tree.st_mtime));
    if (count_pairs_of_one_size() > k_most_pairs)
      command.argv.emplace_back("-no-duplicates");
    command.input_from = input;
    command.output_file = file;
    command.ends_with_us = true;               // if there is no progress, this process is killed
    command.deadline = std::chrono::hours(24); // long, because the program ends when the pipe is closed
    return command;
  }

  /// Writes the tree to a pipe from which mksquashfs, run by a thread, makes the image.
  Result<Packed> make(const sys::Fd& image) {
    sys::Pipe pipe;
    if (!pipe.open())
      return fail(errno_error(errno, "cannot make a pipe"));
    constexpr int k_pipe_bytes = 1 << 20;
    // An error is ignored: a smaller pipe only causes more process switches.
    ::fcntl(pipe.write.get(), F_SETPIPE_SZ, k_pipe_bytes);
    const auto command = squashfs_command(image.get(), pipe.read.get());
    std::future<Result<sys::Completed>> done;
    try {
      done = std::async(std::launch::async, [&] {
        auto completed = sys::run_process(command);
        pipe.read.reset(); // the writer gets EPIPE
        return completed;
      });
    } catch (const std::system_error& error) {
      return fail(errno_error(error.code().value(), "cannot start a thread"));
    }
    sys::Fd input(std::move(pipe.write)); // an exception closes it before `done` waits for mksquashfs
    const auto written = write_tar(input.get());
    input.reset(); // the end of the input
    const auto finished = check_squashfs(done.get());
    if (!written && !m_pipe_broke) // mksquashfs has failed only because its input ended early
      return fail(written.error());
    TRY(finished);
    TRY(written);
    return check_image(image);
  }

  /// Hashes the image in the open file, sets its group and mode, and syncs it. Its name is not used, because others may
  /// have replaced it.
  Result<Packed> check_image(const sys::Fd& image) {
    TRY_ASSIGN(auto content, hash_file(image.get(), m_packing.file, m_counters, k_steps, k_magic));
    if (content.bytes == 0)
      return fail(ErrorCode::conflict, m_packing.file + " is not what mksquashfs has made: somebody else works there");
    const auto gid = m_packing.gid.value_or(m_tree->status().st_gid);
    mode_t readers = S_IRGRP | S_IROTH;
    narrow_readers(readers, m_tree->status().st_mode);
    for (const auto& entry : m_entries)
      narrow_readers(readers, entry.mode);
    auto mode = mode_for(readers, m_packing.most, gid == m_tree->status().st_gid);
    if (::fchown(image.get(), k_as_it_is, gid) != 0) // the image has any group, so it is for all or for its owner
      mode = (m_packing.most & 0044U) == 0044U ? mode_for(readers, m_packing.most, false) : S_IRUSR;
    if (::fchmod(image.get(), mode) != 0 || ::fsync(image.get()) != 0)
      return fail(errno_error(errno, m_packing.file));
    return Packed{std::move(content.sha256), content.bytes, m_files};
  }

  Result<void> write_tar(int pipe) {
    TarWriter tar(pipe);
    Batch batch; // while one is read, mksquashfs works on what it has read before
    for (std::size_t at = 0; at < m_entries.size(); at = batch.end) {
      read_ahead(at, batch);
      for (auto one = batch.begin; one < batch.end; ++one)
        TRY(add(tar, one, batch.contents[one - batch.begin]));
    }
    for (const auto& entry : m_added) {
      const auto text = std::ranges::find(m_packing.added, entry.path, &AddedFile::path)->text;
      TRY(put(tar, entry, [&] { return tar.write(text); }));
    }
    const int error = tar.end();
    m_pipe_broke = error == EPIPE;
    return error == 0 ? Result<void>{} : fail(errno_error(error, "mksquashfs"));
  }

  [[nodiscard]] bool is_small(const Entry& entry) const { return S_ISREG(entry.mode) && entry.size <= k_small; }

  void read_ahead(std::size_t begin, Batch& batch) const {
    batch.begin = batch.end = begin;
    std::uint64_t bytes = 0;
    for (; batch.end < m_entries.size() && bytes < k_ahead_bytes && batch.end - begin < k_ahead_files; ++batch.end)
      bytes += is_small(m_entries[batch.end]) ? m_entries[batch.end].size : 0;
    batch.contents.resize(batch.end - begin);
    in_parallel(batch.contents.size(), [&](std::size_t number) {
      const auto& entry = m_entries[begin + number];
      auto& content = batch.contents[number];
      if (is_small(entry))
        content.error = read(begin + number, entry.size + 1, content.bytes);
    });
  }

  /// Reads the file as Reader::read(), in the tree Packing::near if it is the same there. ESTALE: it is not the listed
  /// file any more.
  template <class... Words> int read(std::size_t at, Words&&... words) const {
    const auto* near = m_near_entries[at];
    return (near != nullptr ? *m_near : *m_tree)
        .read(m_entries[at].path, std::forward<Words>(words)..., near != nullptr ? near : &m_entries[at]);
  }

  /// `content`: of a small file, which is read already.
  Result<void> add(TarWriter& tar, std::size_t at, const Batch::Content& content) {
    const auto& entry = m_entries[at];
    if (!is_small(entry))
      return put(tar, entry, [&] { return S_ISREG(entry.mode) ? write_large(tar, at) : 0; });
    if (content.error != 0 || content.bytes.size() != entry.size)
      return unreadable(entry, content.error != 0 ? content.error : ESTALE);
    const auto head = std::string_view(content.bytes).substr(0, k_head);
    if (m_packing.leaves_out && m_packing.leaves_out(entry, head, [&](const auto& path) { return find(path); }))
      return {};
    return put(tar, entry, [&] { return tar.write(content.bytes); });
  }

  /// Writes the content of a large file. Returns 0 or errno.
  int write_large(TarWriter& tar, std::size_t at) const {
    std::uint64_t done = 0;
    int error = 0;
    const int failed = read(at, [&](std::string_view piece) {
      done += piece.size();
      error = done > m_entries[at].size ? ESTALE : tar.write(piece);
      return error == 0;
    });
    if (failed != 0 || error != 0)
      return failed != 0 ? failed : error;
    return done == m_entries[at].size ? 0 : ESTALE;
  }

  template <class Content> Result<void> put(TarWriter& tar, const Entry& entry, const Content& content) {
    if (!S_ISDIR(entry.mode))
      ++m_files;
    int error = tar.add(entry);
    if (error == 0)
      error = content();
    m_pipe_broke = error == EPIPE;
    return error == 0 ? Result<void>{} : unreadable(entry, error);
  }

  [[nodiscard]] Result<void> unreadable(const Entry& entry, int error) const {
    const auto path = join_path(m_packing.tree.path, entry.path);
    if (error == ESTALE)
      return fail(ErrorCode::conflict, path + " could not be read as it was seen, or changes");
    return fail(errno_error(error, path));
  }

  const Packing& m_packing;
  const sys::ProgressCounters& m_counters;
  std::optional<Reader> m_tree, m_near;
  std::vector<Entry> m_entries, m_added, m_near_list;
  std::vector<const Entry*> m_near_entries; ///< for each of m_entries the one in the tree Packing::near, if it is used
  std::uint64_t m_files = 0;
  bool m_pipe_broke = false; ///< mksquashfs has ended before all was written to it
};

/// Explains why an entry cannot get the owner and group of the tree; empty: it can, because the same users may read and
/// search it afterwards.
std::string explain_unpackable(const Entry& entry, const struct stat& tree) {
  constexpr mode_t k_reads = 5;
  const auto bits = [&](unsigned shift) { return (entry.mode >> shift) & k_reads; };
  if (!S_ISREG(entry.mode) && !S_ISDIR(entry.mode) && !S_ISLNK(entry.mode))
    return "is no file, directory or symbolic link";
  if (S_ISLNK(entry.mode))
    return {};
  const bool same_owner = entry.uid == tree.st_uid, same_group = entry.gid == tree.st_gid;
  const mode_t owner = bits(6), group = bits(3), others = bits(0);
  if ((!same_owner && owner != (same_group ? group : others)) || (!same_group && group != others))
    return fmt::format("belongs to {}:{} with mode {:04o}, and the directory itself to {}:{}", entry.uid, entry.gid,
                       entry.mode & 07777U, tree.st_uid, tree.st_gid);
  return {};
}

} // namespace

void narrow_readers(mode_t& readers, mode_t entry) {
  if (S_ISLNK(entry))
    return;
  const mode_t enters = entry << 2U; // the bits x, in the places of the bits r
  readers &= S_ISDIR(entry) ? entry & enters : entry;
}

mode_t mode_for(mode_t readers, std::uint32_t most, bool of_tree) {
  const mode_t others = readers & S_IROTH;
  return S_IRUSR | (most & (others | (of_tree ? readers & S_IRGRP : others << 3U)));
}

Result<std::vector<Entry>> list_packable(Reader& tree, const Place& place) {
  TRY_ASSIGN(auto entries, tree.list());
  tree.narrow_modes(entries);
  constexpr mode_t k_read = 4, k_search = 1;
  constexpr const char* k_excludes = " has an ACL that keeps somebody out, and an image has no ACLs";
  if ((tree.withheld() & (k_read | k_search)) != 0)
    return fail(ErrorCode::unsupported, place.path + k_excludes);
  for (const auto& entry : entries) {
    const auto path = join_path(place.path, entry.path);
    if (entry.error_number != 0)
      return fail(errno_error(entry.error_number, path));
    if ((entry.withheld & (S_ISDIR(entry.mode) ? k_read | k_search : k_read)) != 0)
      return fail(ErrorCode::unsupported, path + k_excludes);
    if (const auto why = explain_unpackable(entry, tree.status()); !why.empty())
      return fail(ErrorCode::unsupported, fmt::format("{} {}", path, why));
  }
  return entries;
}

Result<Packed> pack(const Packing& packing, const Options& options, const OnProgress& progress) {
  return watched(packing.tree.path, options, progress, [&](const sys::ProgressCounters& counters) -> Result<Packed> {
    ::signal(SIGPIPE, SIG_IGN);      // mksquashfs may end before all is written
    ::unsetenv("SOURCE_DATE_EPOCH"); // mksquashfs would also limit the times of files to it
    return Packer(packing, counters).run();
  });
}

} // namespace sharefs::tree
