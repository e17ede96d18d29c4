#pragma once
// Private to conda: the work in the child of probe(). The tree is listed and the records are read once, for all checks.
#include "conda/environment.hpp"
#include "conda/records.hpp"
#include "plan/action_fields.hpp"
#include "sys/process/wire.hpp"
#include "tree/reader.hpp"

#include <string_view>
#include <unordered_map>
#include <utility>

namespace sharefs::conda {

/// The tree of an environment and the records in it.
class EnvironmentReader {
 public:
  struct ReadRecord {
    std::string path;                               ///< conda-meta/x.json
    std::pair<std::int64_t, std::int64_t> modified; ///< seconds, and nanoseconds within the second
    std::string text;
    Record record;
  };
  /// A file of a package.
  struct KnownFile {
    std::size_t record = 0; ///< the number of its record
    const RecordedFile* file = nullptr;
  };

  /// Errors: `not_found` without conda-meta; `failed` if the records exceed k_all_records_limit or k_all_recorded.
  static Result<EnvironmentReader> read(const sys::Files& files, const std::string& path,
                                        const sys::ProgressCounters& counters);

  [[nodiscard]] const tree::Reader& tree() const { return m_tree; }
  [[nodiscard]] const std::vector<tree::Entry>& entries() const { return m_entries; }
  [[nodiscard]] const std::vector<ReadRecord>& records() const { return m_records; }
  [[nodiscard]] const std::vector<Found>& problems() const { return m_problems; } ///< faults of records and scripts
  void add_problem(Found problem) { m_problems.push_back(std::move(problem)); }
  [[nodiscard]] const tree::Entry* entry(std::string_view path) const;
  [[nodiscard]] const KnownFile* known(std::string_view path) const;

 private:
  explicit EnvironmentReader(tree::Reader tree) : m_tree(std::move(tree)) {}
  Result<void> read_records(const sys::Files& files, const sys::ProgressCounters& counters);
  /// Reads the record of the guard, which pip or sharefs has written.
  void read_guard();

  tree::Reader m_tree;
  std::vector<tree::Entry> m_entries;
  std::vector<ReadRecord> m_records;
  std::vector<Found> m_problems;
  std::unordered_map<std::string_view, KnownFile> m_known; ///< a move of this object leaves the pointers valid
};

/// True for a program or a pkg-config file, whose first lines name the prefix.
bool names_prefix(const tree::Entry& entry);
/// True if a relative link at `path` leads above the environment.
bool leads_out(const std::string& path, const std::string& target);
/// True if a file of this name may belong to an editable install: pip and setuptools have four forms of it.
bool may_be_editable(const std::string& path);
/// Returns the line with the path of the code if the file belongs to an editable install, or "" for forms whose path is
/// not read; nullopt if the file belongs to none.
std::optional<std::string> editable_in(const std::string& path, const std::string& text,
                                       const PrefixDecision& decision);
/// Returns a change of this very file, so that another file that takes its place meanwhile is not changed.
plan::FileChange change_of(const tree::Entry& entry);
/// Returns the bits that group and others need to read a file or directory of this mode, if they may enter a tree whose
/// mode is `top`; none for those who may not.
std::uint32_t bits_as_open_as(std::uint32_t top, std::uint32_t mode);

/// Returns the prefixes that scripts name; `leads` is not set yet. `failed` for more than k_most_prefixes, because all
/// files would be searched for each of them. A script that cannot be read is added to problems().
inline constexpr std::size_t k_most_prefixes = 100;
Result<std::vector<PrefixUse>> find_prefixes(EnvironmentReader& reader);
/// Compares every file with its record. `uses`: those of find_prefixes(), with `leads`.
EnvironmentState read_environment(const EnvironmentReader& reader, const std::vector<PrefixUse>& uses,
                                  const PrefixDecision& decision, const EnvironmentRequest& request);

// The prefixes in one file of an environment that was read. Pure.

struct NamingFile {
  std::string checksum = {};
  std::vector<bool> holds = {};           ///< for each needle, whether the file holds it
  const RecordedFile* recorded = nullptr; ///< in the record of its package; nullptr: it belongs to none
  bool starts = false;                    ///< its first lines name the prefix to start a program
  std::string bytes = {};                 ///< the content; empty if no prefix can be replaced in it
  bool sound = false;                     ///< it is as installed, by the checksum in its record
  bool follows = false;                   ///< the checksum in its record is changed with the file
  bool restored = false;                  ///< with the placeholder for one of the prefixes it is the package's file
  std::string env_prefix = {};            ///< that prefix, if `#!/usr/bin/env` was written for it
};

/// Counts how often the content may name the prefix in any encoding, and stops above `most`.
std::size_t count_prefix(std::string_view content, const PrefixNeedle& needle, std::size_t most);
/// Sets `restored`: checks whether the content is the package's if the placeholder replaces one of the first prefixes.
/// `needles` holds the right prefix, `old` prefixes that it shall replace, and others.
void find_restored(const std::vector<PrefixNeedle>& needles, std::size_t old, NamingFile& file);
/// Returns the prefixes to replace in the file. One may be the right prefix itself, if `#!/usr/bin/env` stands for it.
std::vector<std::string> prefixes_to_replace(const std::vector<PrefixNeedle>& needles, std::size_t old,
                                             const NamingFile& file);

/// True if find_prefixes() knows a prefix that is replaced by this file: it is changed when no other file names that.
bool shows_prefix(const NamingFile& file, const PrefixDecision& decision);

struct ReplacedPrefixes {
  std::string after;              ///< the new content
  Edits edits;                    ///< turn the old content into `after`
  std::vector<std::string> named; ///< prefixes that the old content names
  std::string no_room = {};       ///< the reason why one of them cannot be replaced; empty: all can
};
/// Replaces `prefixes` by `right`, in this order. Stops at the first one that cannot be replaced.
ReplacedPrefixes replace_in(const NamingFile& file, const std::vector<std::string>& prefixes, const std::string& right);

template <FieldsOf<PrefixUse> U> auto fields(U& u) {
  return named("prefix", u.prefix, "leads", u.leads, "certain", u.certain, "files", u.files);
}
template <FieldsOf<PrefixDecision> D> auto fields(D& d) {
  return named("right", d.right, "replace", d.replace, "left", d.left);
}
template <FieldsOf<Found> F> auto fields(F& f) {
  return named("kind", f.kind, "path", f.path, "detail", f.detail);
}
template <FieldsOf<EnvironmentState> S> auto fields(S& s) {
  return named("path", s.path, "device", s.device, "inode", s.inode, "uid", s.uid, "gid", s.gid, "mode", s.mode,
               "packages", s.packages, "files", s.files, "managed", s.managed, "bytes", s.bytes, "others_write",
               s.others_write, "own_group", s.own_group, "python", s.python, "python_identity", s.python_identity,
               "prefixes", s.prefixes, "decision", s.decision, "found", s.found, "contents", s.contents, "modes",
               s.modes, "compiled", s.compiled, "links", s.links);
}

} // namespace sharefs::conda
