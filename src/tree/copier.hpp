#pragma once
// Private to tree: the one copy that a child makes. Directories in copy.cpp, what lies in them in copy_files.cpp.
#include "tree/attributes.hpp"
#include "tree/job.hpp"

#include <map>
#include <span>

namespace sharefs::tree {

// What is in a file (content.cpp). Holes are skipped, and count as the zeros that they stand for.

struct Hash { ///< XXH3, 128 bits: finds damage, no forgery
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const Hash&, const Hash&) = default;
};
/// Of `size` bytes of an open file. An errno and which of two descriptors it is of.
struct ContentError {
  int error_number = 0;
  bool of_target = false;
};
using Hashed = tl::expected<Hash, ContentError>;

/// From the beginning of `from`, whose fstat is `status`, to the empty file `to`; the hash of what was read. A file
/// that is shorter by now is copied as far as it goes.
Hashed copy_content(Job& job, int from, const struct stat& status, int to);
/// Reads what the file system has, not what this host has cached of it, as far as the kernel allows that.
Hashed hash_content(Job& job, int file, const struct stat& status, bool from_disk);

/// A directory and its copy.
struct Pair : Node { // Node::fd: the original
  explicit Pair(Workers& of) : workers(of) { workers.hold(); }
  ~Pair() { workers.let_go(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  Workers& workers;
  sys::Fd to;
  struct stat status = {};              ///< of the original, before its names were read
  bool existed = false;                 ///< the copy was there before, with what an earlier run has left in it
  bool closed = false;                  ///< this run has made it, and only its owner gets in, until it is finished
  timespec made{};                      ///< when
  bool inherited = false;               ///< the copy may have an ACL of the directory above it
  bool hands_on = false;                ///< what is made in the copy may inherit an ACL
  bool again = false;                   ///< its names were read a second time
  bool opaque = false;                  ///< of a layer: the copy has nothing else
  std::map<std::string, ino_t> entered; ///< directories in it that were gone through
};
using PairPointer = std::shared_ptr<Pair>;

class Copier {
 public:
  Copier(const Place& from, const Place& to, const Options& options, const sys::ProgressCounters& counters)
      : m_job(options, counters), m_from(from), m_to(to) {}
  Result<CopyReport> run();

 private:
  enum class State { working, done, failed };
  using Inode = std::pair<dev_t, ino_t>;
  struct Claim { ///< of a file with several names: the one that is copied, to which the others link
    std::string path;
    struct stat status = {};
    State state = State::working;
  };
  enum class Original { same, again, failed }; ///< unchanged; changed and copied once more; changed and not copied
  struct File {
    std::string name;
    std::string made; ///< its name until it is finished
    sys::Fd from, to;
    struct stat status = {};
    Hash hash;
    int error_number = 0; ///< it could not be synced
    std::optional<Inode> claimed;
  };

  struct Files { ///< those of a directory, shared by the threads that work in it
    explicit Files(std::vector<Name> all) : names(std::move(all)) {}
    std::vector<Name> names;
    std::atomic<std::size_t> next{0};
  };

  // Directories
  Result<PairPointer> start(Found from, Found to);
  void enter(const PairPointer& parent, const std::string& name);
  bool was_entered(const Pair& pair, const std::string& name);
  bool open_copy(Pair& pair, int parent, bool parent_hands_on);
  void fill(const PairPointer& pair);
  void clean(const Pair& pair, const std::vector<Name>& wanted);
  void leave(PairPointer pair);
  [[nodiscard]] bool is_there(const Pair& pair, const struct stat& made, const Attributes& attributes) const;
  bool finish(const PairPointer& pair);
  bool read_marks(Pair& pair);
  void remove_below(int directory, const Name& name, const std::string& path);

  // What lies in them
  void copy_next(const PairPointer& pair, const std::shared_ptr<Files>& files);
  [[nodiscard]] bool in_place(const Pair& pair, const struct stat& original) const;
  void copy_all(const Pair& pair, std::span<const Name> names, bool last_try);
  void end_all(const Pair& pair, std::vector<File>& files, bool last_try);
  std::optional<File> begin(const Pair& pair, const Name& name, bool may_link, bool asks = false);
  int make(const Pair& pair, File& file, mode_t mode, struct stat& status);
  bool write(const Pair& pair, File& file, const Attributes& attributes);
  Original check_original(const Pair& pair, File& file, bool last_try);
  bool end(const Pair& pair, File& file, bool last_try);
  bool is_kept(const Pair& pair, const File& file, const Attributes& attributes);

  // Names
  void take_away(const Pair& pair, const std::string& name);
  void copy_link(const Pair& pair, const std::string& name);
  bool link_file(const Pair& pair, const std::string& name);
  void add_name(const Pair& pair, const std::string& name);
  bool admits(const std::string& path, const struct stat& status);
  /// True: it is this caller's to copy.
  bool claim(const Inode& inode, const std::string& path, const struct stat& status);
  void settle(const std::optional<Inode>& inode, State state);
  /// Puts what is finished in its place, where it is not there already.
  bool put(const Pair& pair, const std::string& made, const std::string& name);
  std::string temporary_name();

  /// As the copy is to be: Options::take_away and own.
  [[nodiscard]] struct stat wanted(struct stat original) const {
    if (!S_ISLNK(original.st_mode))
      original.st_mode &= ~(m_job.options.take_away & 07777U);
    if (m_job.options.own) { // to chown(2): as it is
      original.st_uid = static_cast<uid_t>(-1);
      original.st_gid = static_cast<gid_t>(-1);
    }
    return original;
  }
  /// Whether something else that has the name of a copy is removed.
  [[nodiscard]] bool replaces() const { return m_job.options.remove_others || m_job.options.layer; }
  [[nodiscard]] std::string source(const std::string& relative) const;
  [[nodiscard]] std::string target(const std::string& relative) const;
  void changed(const std::string& relative);
  void refuse(const std::string& relative, const std::string& reason, const std::string& hint);
  void refuse_rights(const std::string& relative);
  void refuse_part(const std::string& relative);
  void count(std::uint64_t CopyReport::* what, std::uint64_t number = 1);

  Job m_job;
  const Place& m_from;
  const Place& m_to;
  const uid_t m_uid = ::geteuid();
  const gid_t m_gid = ::getegid();
  int m_top = -1;           ///< the copy
  bool m_attributes = true; ///< the file system of the original has some
  bool m_capabilities = true;
  bool m_to_nfs = false; ///< the copy lies on NFS
  std::string m_run;     ///< part of the names of what is not finished
  std::atomic<std::uint64_t> m_temporaries{0};
  std::mutex m_mutex;
  std::condition_variable m_settled;
  std::map<Inode, Claim> m_claims;
  CopyReport m_report;
};

/// Set-id bits of a program. (Of a directory they mean something else.)
bool has_set_id(const struct stat& status);
/// Is it the name of what a copy has not finished?
bool is_temporary(const std::string& name);

} // namespace sharefs::tree
