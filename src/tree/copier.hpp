#pragma once
// Private to tree: the copy that a child makes. copy.cpp has the directories, copy_files.cpp the files, copy_links.cpp
// symbolic and hard links.
#include "tree/attributes.hpp"
#include "tree/job.hpp"

#include <array>
#include <map>

namespace sharefs::tree {

// Content of files (content.cpp). Holes are not read; they are hashed as zeros.

struct Hash { ///< XXH3, 128 bits: it detects damage, but no forgery
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const Hash&, const Hash&) = default;
};
/// An errno, and whether it comes from the target or from the source.
struct ContentError {
  int error_number = 0;
  bool of_target = false;
};
using Hashed = tl::expected<Hash, ContentError>;

/// Hashes the content of a file, whose fstat is `status`, and copies it to the empty file `copy`, if that is given.
/// Returns the hash of the bytes that were read. If the file is shorter by now, only the bytes that exist are read.
Hashed hash_content(Job& job, int file, const struct stat& status, int copy = -1);

/// A directory and its copy.
struct Pair : Node { // Node::fd: the original
  explicit Pair(Workers& of) : workers(of) { workers.hold(); }
  ~Pair() { workers.release(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  Workers& workers;
  sys::Fd to;
  struct stat status = {};  ///< of the original, before its names were read
  bool existed = false;     ///< the copy existed before, perhaps with files of an earlier run
  bool closed = false;      ///< this run has made the copy; only its owner can enter it until it is finished
  timespec made{};          ///< mtime of the copy when it was opened
  bool inherited = false;   ///< the copy may have inherited an ACL from its parent directory
  bool gives_acl = false;   ///< new entries of the copy may inherit an ACL
  bool second_read = false; ///< its names were read a second time, because the original had changed
  bool opaque = false;      ///< for a layer: other entries of the copy are removed
  std::map<std::string, ino_t> entered; ///< directories in it that were already copied
};
using PairPointer = std::shared_ptr<Pair>;

class Copier {
 public:
  Copier(const Place& from, const Place& to, const Options& options, const sys::ProgressCounters& counters)
      : m_job(options, counters), m_from(from), m_to(to) {}
  /// `to`: the destination, whose directory may be made already.
  Result<CopyReport> run(Found to);

 private:
  using Inode = std::pair<dev_t, ino_t>;
  struct Copied { ///< a file with several names: the name that was copied, to which the others become links
    std::string path;
    struct stat status = {};
  };
  struct File {
    std::string name, path; ///< `path` is relative to the tree
    std::string made = {};  ///< the name of the copy until it is finished
    sys::Fd from = {}, to = {};
    struct stat status = {};
    Hash hash = {};
  };

  struct Files { ///< the files of a directory, shared by the threads that work in it
    explicit Files(std::vector<Name> all) : names(std::move(all)) {}
    std::vector<Name> names;
    std::atomic<std::size_t> next{0};
  };

  // Directories
  Result<PairPointer> start(Found from, Found to);
  void enter(const PairPointer& parent, const std::string& name);
  bool was_entered(const Pair& pair, const std::string& name);
  bool open_copy(Pair& pair, int parent, bool parent_gives_acl);
  void fill(const PairPointer& pair);
  void clean(const Pair& pair, const std::vector<Name>& wanted);
  void leave(PairPointer pair);
  [[nodiscard]] bool is_unchanged(const Pair& pair, const struct stat& made, const Attributes& attributes) const;
  bool finish(const PairPointer& pair);
  bool read_marks(Pair& pair);
  void remove_below(int directory, const Name& name, const std::string& path);

  // Files
  void copy_next(const PairPointer& pair, const std::shared_ptr<Files>& files);
  void copy_entry(const Pair& pair, const Name& name);
  void copy_special(const Pair& pair, const std::string& name);
  [[nodiscard]] bool in_place(const Pair& pair, const struct stat& original) const;
  bool copy_file(const Pair& pair, const std::string& name, bool last_try);
  bool open_original(const Pair& pair, File& file, bool asks);
  int make(const Pair& pair, File& file, mode_t mode, struct stat& status);
  bool write(const Pair& pair, File& file, const Attributes& attributes);
  bool finish_file(const Pair& pair, File& file, bool last_try);
  bool is_kept(const Pair& pair, const File& file, const Attributes& attributes);
  static void discard(const Pair& pair, const File& file);
  void note_copied(const File& file);

  // Names
  void remove_name(const Pair& pair, const std::string& name);
  void copy_link(const Pair& pair, const std::string& name);
  bool link_file(const Pair& pair, const std::string& name);
  bool add_name(const Pair& pair, const File& file);
  bool admits(const std::string& path, const struct stat& status);
  /// Renames a finished entry to its final name, unless it already has it.
  bool move_into_place(const Pair& pair, const std::string& made, const std::string& name);
  std::string temporary_name();
  /// Makes an entry by `link`, `at_once` under its final name if that is free, else under a temporary one. Returns the
  /// name; empty, with errno, on an error.
  std::string link_as(const std::string& name, bool at_once, const std::function<bool(const std::string& as)>& link);

  /// Returns the status that the copy should have, with Options::removed_mode_bits and own applied.
  [[nodiscard]] struct stat wanted(struct stat original) const {
    if (!S_ISLNK(original.st_mode))
      original.st_mode &= ~(m_job.options.removed_mode_bits & 07777U);
    if (m_job.options.own) { // chown(2) does not change an id of -1
      original.st_uid = static_cast<uid_t>(-1);
      original.st_gid = static_cast<gid_t>(-1);
    }
    return original;
  }
  /// True if another kind of entry with the name of a copy is removed.
  [[nodiscard]] bool replaces() const { return m_job.options.remove_others || m_job.options.layer; }
  [[nodiscard]] std::string source(const std::string& relative) const;
  [[nodiscard]] std::string target(const std::string& relative) const;
  void changed(const std::string& relative);
  void refuse(const std::string& relative, const std::string& reason, const std::string& hint);
  void refuse_rights(const std::string& relative);
  void count(std::uint64_t CopyReport::* what, std::uint64_t number = 1);

  Job m_job;
  const Place& m_from;
  const Place& m_to;
  const uid_t m_uid = ::geteuid();
  const gid_t m_gid = ::getegid();
  int m_top = -1;             ///< the directory of the whole copy
  bool m_capabilities = true; ///< the file system of the original supports capabilities
  bool m_to_nfs = false;      ///< the copy lies on NFS
  std::string m_run;          ///< random letters in the temporary names of this run
  std::atomic<std::uint64_t> m_temporaries{0};
  std::mutex m_mutex;
  std::map<Inode, Copied> m_copied;
  /// While a file with several names is copied, one of these, by its inode, keeps other threads from copying another
  /// name of it.
  std::array<std::mutex, 256> m_link_locks;
  CopyReport m_report;
};

/// True for a file with set-id bits. (On a directory they have another meaning.)
bool has_set_id(const struct stat& status);
/// True for a temporary name, which an unfinished file of a copy has.
bool is_temporary(const std::string& name);

} // namespace sharefs::tree
