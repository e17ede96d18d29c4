#pragma once
// Private to conda: what the child of probe() finds. It lists the tree and reads the records once, for all that needs
// them.
#include "conda/environment.hpp"
#include "conda/records.hpp"
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
  static Result<EnvironmentReader> read(const sys::Files& files, const std::string& path, const sys::Pulse& pulse);

  [[nodiscard]] const tree::Reader& tree() const { return m_tree; }
  [[nodiscard]] const std::vector<tree::Entry>& entries() const { return m_entries; }
  [[nodiscard]] const std::vector<ReadRecord>& records() const { return m_records; }
  [[nodiscard]] const std::vector<Found>& problems() const { return m_problems; } ///< with records
  [[nodiscard]] const tree::Entry* entry(std::string_view path) const;
  [[nodiscard]] const KnownFile* known(std::string_view path) const;
  [[nodiscard]] const RecordedFile* recorded(std::string_view path) const;

 private:
  explicit EnvironmentReader(tree::Reader tree) : m_tree(std::move(tree)) {}
  Result<void> read_records(const sys::Files& files, const sys::Pulse& pulse);

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

template <sys::WireOf<PrefixUse> U> auto wire_fields(U& u) {
  return std::tie(u.prefix, u.leads, u.certain, u.files);
}
template <sys::WireOf<PrefixDecision> D> auto wire_fields(D& d) {
  return std::tie(d.right, d.replace, d.left);
}
template <sys::WireOf<Found> F> auto wire_fields(F& f) {
  return std::tie(f.kind, f.path, f.detail);
}
template <sys::WireOf<MovedLink> L> auto wire_fields(L& l) {
  return std::tie(l.path, l.before, l.after, l.identity);
}
template <sys::WireOf<EnvironmentState> S> auto wire_fields(S& s) {
  return std::tie(s.path, s.device, s.inode, s.uid, s.gid, s.mode, s.packages, s.files, s.managed, s.bytes,
                  s.others_write, s.own_group, s.python, s.python_identity, s.prefixes, s.decision, s.found, s.contents,
                  s.modes, s.compiled, s.links);
}

} // namespace sharefs::conda

namespace sharefs {
template <sys::WireOf<Edit> E> auto wire_fields(E& e) {
  return std::tie(e.offset, e.before, e.after);
}
} // namespace sharefs
namespace sharefs::plan {
template <sys::WireOf<FileChange> C> auto wire_fields(C& c) {
  return std::tie(c.path, c.before, c.after, c.edits, c.mode_before, c.mode_after, c.removed, c.identity);
}
} // namespace sharefs::plan
