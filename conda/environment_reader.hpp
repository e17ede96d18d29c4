#pragma once
// Private to conda: what the child of probe() finds. It lists the tree and reads the records once, for all that needs
// them.
#include "conda/environment.hpp"
#include "conda/records.hpp"
#include "plan/action_fields.hpp"
#include "sys/process/wire.hpp"
#include "tree/reader.hpp"

#include <string_view>
#include <unordered_map>

namespace sharefs::conda {

/// The tree and the records in it.
class EnvironmentReader {
 public:
  struct KnownFile {
    std::size_t record = 0, number = 0;
  };
  struct ReadRecord {
    std::string path; ///< conda-meta/x.json
    std::string text;
    Record record;
  };

  /// `not_found` without conda-meta; `failed` where its records are more than k_all_records_limit or k_all_recorded.
  static Result<EnvironmentReader> read(const sys::Files& files, const std::string& path,
                                        const sys::ProgressCounters& counters);

  [[nodiscard]] const tree::Reader& tree() const { return m_tree; }
  [[nodiscard]] const std::vector<tree::Entry>& entries() const { return m_entries; }
  [[nodiscard]] const std::vector<ReadRecord>& records() const { return m_records; }
  [[nodiscard]] const std::vector<Found>& problems() const { return m_problems; } ///< with records
  [[nodiscard]] const tree::Entry* entry(std::string_view path) const;
  [[nodiscard]] const KnownFile* known(std::string_view path) const;
  [[nodiscard]] const RecordedFile* recorded(std::string_view path) const;

 private:
  explicit EnvironmentReader(tree::Reader tree) : m_tree(std::move(tree)) {}
  Result<void> read_records(const sys::Files& files, const sys::ProgressCounters& counters);
  /// The guard's own record, which pip or sharefs has written.
  void read_guard();

  tree::Reader m_tree;
  std::vector<tree::Entry> m_entries;
  std::vector<ReadRecord> m_records;
  std::vector<Found> m_problems;
  std::unordered_map<std::string_view, KnownFile> m_known;
};

/// Is it a program, or a file of pkg-config? Their first lines name the prefix.
bool names_prefix(const tree::Entry& entry);
/// Does a relative link at `path` lead above the environment?
bool leads_out(const std::string& path, const std::string& target);
/// The four ways in which pip and setuptools leave code where it is, by the name of a file and by its text: what it
/// names, which may be empty; nullopt: it is none of them.
bool may_be_editable(const std::string& path);
std::optional<std::string> editable_in(const std::string& path, const std::string& text,
                                       const PrefixDecision& decision);
/// What group and others need to read something of this mode, if they may enter a tree with the mode `top`: never more.
std::uint32_t bits_as_open_as(std::uint32_t top, std::uint32_t mode);

/// The prefixes that scripts name; `leads` is not known yet. `failed`: more than k_most_prefixes, for each of which all
/// files would be searched.
inline constexpr std::size_t k_most_prefixes = 100;
Result<std::vector<PrefixUse>> find_prefixes(const EnvironmentReader& reader);
/// Every file against its record.
EnvironmentState read_environment(const EnvironmentReader& reader, const PrefixDecision& decision,
                                  const EnvironmentRequest& request);

template <FieldsOf<PrefixUse> U> auto fields(U& u) {
  return named("prefix", u.prefix, "leads", u.leads, "certain", u.certain, "files", u.files);
}
template <FieldsOf<PrefixDecision> D> auto fields(D& d) {
  return named("right", d.right, "replace", d.replace, "left", d.left);
}
template <FieldsOf<Found> F> auto fields(F& f) {
  return named("kind", f.kind, "path", f.path, "detail", f.detail);
}
template <FieldsOf<MovedLink> L> auto fields(L& l) {
  return named("path", l.path, "before", l.before, "after", l.after, "identity", l.identity);
}
template <FieldsOf<EnvironmentState> S> auto fields(S& s) {
  return named("path", s.path, "device", s.device, "inode", s.inode, "uid", s.uid, "gid", s.gid, "mode", s.mode,
               "packages", s.packages, "files", s.files, "managed", s.managed, "bytes", s.bytes, "others_write",
               s.others_write, "own_group", s.own_group, "python", s.python, "python_identity", s.python_identity,
               "prefixes", s.prefixes, "decision", s.decision, "found", s.found, "contents", s.contents, "modes",
               s.modes, "compiled", s.compiled, "links", s.links);
}

} // namespace sharefs::conda
