// Compares every file of an environment with its record.
#include "conda/environment_reader.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/fs/sha256.hpp"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <limits>
#include <mutex>
#include <set>

namespace sharefs::conda {

namespace {

/// The largest file that is patched: it is held in memory a few times. Files above `k_large` are read one at a time.
constexpr std::uint64_t k_largest_patched = 2ULL << 30U, k_large = 32ULL << 20U;
/// The limit of prefixes to replace in all files together: each is an edit, which takes more memory than the prefix.
/// The largest environments that are known have some 100,000.
constexpr std::size_t k_most_edits = 2'000'000;
constexpr std::uint64_t k_largest_compiled = 64ULL << 20U;
constexpr std::uint64_t k_compiled_header = 16; // PEP 552
constexpr std::uint32_t k_nobody = 65534, k_nobody_32 = 4294967294U;

class EnvironmentCheck {
 public:
  EnvironmentCheck(const EnvironmentReader& reader, const std::vector<PrefixUse>& uses, const PrefixDecision& decision,
                   const EnvironmentRequest& request)
      : m_reader(reader), m_decision(decision), m_request(request) {
    m_needles.emplace_back(decision.right);
    for (const auto* list : {&decision.replace, &decision.left})
      for (const auto& prefix : *list)
        m_needles.emplace_back(prefix);
    for (const auto& needle : m_needles) {
      const auto known = std::ranges::find(uses, needle.prefix(), &PrefixUse::prefix);
      const auto leads = needle.prefix() == decision.right ? Leads::here : Leads::nowhere;
      m_uses.push_back(known != uses.end() ? *known : PrefixUse{needle.prefix(), leads});
      m_uses.back().files = 0; // here all files are counted, not only scripts
    }
  }

  EnvironmentState check(const std::string& path) {
    const auto& status = m_reader.tree().status();
    m_state.path = path;
    m_state.device = status.st_dev;
    m_state.inode = status.st_ino;
    m_state.uid = status.st_uid;
    m_state.gid = status.st_gid;
    m_state.mode = status.st_mode & 07777U;
    m_state.packages = static_cast<std::uint64_t>(std::ranges::count_if(
        m_reader.records(), [](const auto& record) { return record.path.starts_with("conda-meta/"); }));
    m_state.found = m_reader.problems();
    m_state.decision = m_decision;
    note_writers(status.st_uid, status.st_gid, status.st_mode);
    m_checksums.resize(m_reader.records().size());
    const auto& entries = m_reader.entries();
    for (const auto& entry : entries)
      if (S_ISREG(entry.mode)) // a file with holes may have any size, so the sum must not overflow
        m_state.bytes += std::min(entry.size, std::numeric_limits<std::uint64_t>::max() - m_state.bytes);
    tree::in_parallel(entries.size(), [&](std::size_t i) { check_entry(entries[i]); });
    find_missing();
    correct_records();
    m_state.prefixes = m_uses;
    std::ranges::sort(m_state.found, [](const Found& a, const Found& b) {
      return std::tie(a.kind, a.path) < std::tie(b.kind, b.path);
    });
    m_state.found.erase(std::ranges::unique(m_state.found).begin(), m_state.found.end());
    for (auto* changes : {&m_state.contents, &m_state.modes, &m_state.compiled})
      std::ranges::sort(*changes, {}, &plan::FileChange::path);
    std::ranges::sort(m_state.links, {}, &plan::Link::path);
    return std::move(m_state);
  }

 private:
  void note(Kind kind, const std::string& path, std::string detail = {}) {
    const std::scoped_lock lock(m_mutex);
    m_state.found.push_back({kind, path, std::move(detail)});
  }

  /// Notes that the file names a prefix to replace. Where that leads here it is another path of the same directory.
  void note_old_prefix(const std::string& path, const std::string& prefix) {
    const auto use = std::ranges::find(m_uses, prefix, &PrefixUse::prefix);
    note(use != m_uses.end() && use->leads == Leads::here ? Kind::second_prefix : Kind::old_prefix, path, prefix);
  }

  void check_entry(const tree::Entry& entry) {
    check_access(entry);
    if (entry.error_number != 0)
      return note(Kind::unreadable, entry.path, errno_text(entry.error_number));
    if (S_ISLNK(entry.mode))
      return check_link(entry);
    if (S_ISDIR(entry.mode))
      return;
    if (!S_ISREG(entry.mode))
      return note(Kind::special, entry.path,
                  S_ISFIFO(entry.mode)   ? "a FIFO"
                  : S_ISSOCK(entry.mode) ? "a socket"
                                         : "a device");
    {
      const std::scoped_lock lock(m_mutex);
      ++m_state.files;
      if (entry.path.starts_with("bin/python3") && (entry.mode & S_IXUSR) != 0 &&
          entry.path.find_first_not_of("0123456789.", 11) == std::string::npos &&
          (m_state.python.empty() || entry.path < m_state.python)) {
        m_state.python = entry.path;
        m_state.python_identity = identity_of(entry);
      }
    }
    if (m_state.bytes > m_request.most_bytes)
      return;
    if (base_name(entry.path).starts_with(".nfs"))
      return note(Kind::nfs_leftover, entry.path);
    if (entry.path.starts_with("conda-meta/"))
      return;
    const auto* known = m_reader.known(entry.path);
    const auto* recorded = known == nullptr ? nullptr : known->file;
    if (recorded != nullptr) {
      const std::scoped_lock lock(m_mutex);
      ++m_state.managed;
    }
    if (m_request.reading == Reading::own && entry.links > 1)
      return;
    if (is_compiled(entry.path))
      return check_compiled(entry);
    if (m_request.reading == Reading::prefixes && known != nullptr && is_as_packaged(entry, *known))
      return;
    if (recorded == nullptr)
      note(Kind::unmanaged, entry.path);
    check_editable(entry);
    check_content(entry, recorded);
  }

  /// True if the file is as in its package, which has no prefix in it. A file that pip or a user has changed has
  /// another size, or is newer than the record of the installation.
  [[nodiscard]] bool is_as_packaged(const tree::Entry& entry, const EnvironmentReader::KnownFile& known) const {
    const auto& recorded = *known.file;
    return !recorded.sha256.empty() && !recorded.patched() && recorded.placeholder.empty() &&
           recorded.size == entry.size && recorded.type == PathType::hardlink && !names_prefix(entry) &&
           std::pair(entry.mtime, entry.mtime_ns) < m_reader.records()[known.record].modified;
  }

  /// True if the file belongs to another user than the environment. A user who may write in the environment could have
  /// put it there.
  [[nodiscard]] bool is_foreign(const tree::Entry& entry) const {
    return entry.mode != 0 && entry.uid != m_reader.tree().status().st_uid;
  }
  /// True if the file may be changed.
  [[nodiscard]] bool may_change(const tree::Entry& entry) const { return m_request.mixed || !is_foreign(entry); }

  /// Notes who may write. A group with the owner's number is taken for the owner's private one, as useradd(8) makes it;
  /// probe() checks that.
  void note_writers(std::uint32_t uid, std::uint32_t gid, std::uint32_t mode) {
    const auto owner = m_reader.tree().status().st_uid;
    const bool group = (mode & S_IWGRP) != 0 && gid != 0;
    const std::scoped_lock lock(m_mutex);
    if (group && gid == owner)
      m_state.own_group = gid;
    if (uid != owner || (mode & S_IWOTH) != 0 || (group && gid != owner))
      m_state.others_write = true;
  }

  void check_access(const tree::Entry& entry) {
    const auto& top = m_reader.tree().status();
    if (is_foreign(entry))
      note(Kind::foreign, entry.path, "uid " + std::to_string(entry.uid));
    if (S_ISREG(entry.mode) && (entry.mode & (S_ISUID | S_ISGID)) != 0)
      note(Kind::set_id, entry.path);
    if (entry.uid == k_nobody || entry.uid == k_nobody_32)
      note(Kind::nobody, entry.path);
    if (S_ISLNK(entry.mode) || entry.error_number != 0)
      return;
    note_writers(entry.uid, entry.gid, entry.mode);
    const auto wanted = bits_as_open_as(top.st_mode, entry.mode);
    if ((entry.mode & wanted) == wanted)
      return;
    note(Kind::closed, entry.path, format_mode(entry.mode & 07777U));
    if (entry.uid != top.st_uid ||
        (S_ISREG(entry.mode) && (entry.links > 1 || (entry.mode & (S_ISUID | S_ISGID)) != 0)) ||
        (!S_ISREG(entry.mode) && !S_ISDIR(entry.mode)))
      return;
    auto change = change_of(entry);
    change.mode_before = entry.mode & 07777U;
    change.mode_after = *change.mode_before | wanted;
    const std::scoped_lock lock(m_mutex);
    m_state.modes.push_back(std::move(change));
  }

  void check_link(const tree::Entry& entry) {
    const auto target = normalize_path(entry.target, parent_path("/" + entry.path));
    if (!entry.target.starts_with('/')) {
      if (leads_out(entry.path, entry.target))
        note(Kind::outside_link, entry.path, entry.target);
      return;
    }
    for (const auto& old : m_decision.replace)
      if (is_under(target, old)) {
        note_old_prefix(entry.path, old);
        const std::scoped_lock lock(m_mutex);
        if (may_change(entry))
          m_state.links.push_back({.path = entry.path,
                                   .before = entry.target,
                                   .after = m_decision.right + target.substr(old.size()),
                                   .identity = change_of(entry).identity});
        return;
      }
    if (!is_under(target, m_decision.right))
      note(Kind::outside_link, entry.path, entry.target);
  }

  void check_compiled(const tree::Entry& entry) {
    std::string content;
    // The header is enough to compare it with its source; the names of old prefixes may be anywhere in the file.
    const auto wanted = m_decision.replace.empty() ? k_compiled_header : k_largest_compiled;
    if (const int error = m_reader.tree().read(entry.path, wanted, content); error != 0)
      return note(Kind::unreadable, entry.path, errno_text(error));
    const auto source = source_of(entry.path);
    const auto* of_source = source.empty() ? nullptr : m_reader.entry(source);
    if (of_source == nullptr)
      return; // without its source it cannot be made again
    const auto old = std::ranges::find_if(
        m_decision.replace, [&](const std::string& prefix) { return content.find(prefix) != std::string::npos; });
    if (old == m_decision.replace.end() && !is_stale(content, of_source->mtime, of_source->size))
      return;
    remove_compiled(entry, old == m_decision.replace.end() ? "" : *old);
  }

  void remove_compiled(const tree::Entry& entry, const std::string& why) {
    note(Kind::stale_pyc, entry.path, why);
    if (!may_change(entry))
      return;
    auto change = change_of(entry);
    change.identity.changed = entry.changed; // since the content is not compared before it is deleted
    change.removed = true;
    const std::scoped_lock lock(m_mutex);
    m_state.compiled.push_back(std::move(change));
  }

  void check_editable(const tree::Entry& entry) {
    std::string text;
    if (!may_be_editable(entry.path))
      return;
    if (m_reader.tree().read(entry.path, 1U << 16U, text) != 0)
      text.clear(); // some forms are known by their names alone
    if (const auto line = editable_in(entry.path, text, m_decision))
      note(Kind::editable, entry.path, *line);
  }

  /// Reads the file once, for its checksum and, if it `searches`, the prefixes in it; or returns errno, ESTALE if the
  /// file changed meanwhile.
  tl::expected<NamingFile, int> read_file(const tree::Entry& entry, bool searches) const {
    NamingFile file;
    file.holds.resize(m_needles.size());
    sys::Sha256 hash;
    std::string window; // the end of the earlier pieces, in which a match may have begun
    const auto reach = std::ranges::max(m_needles, {}, &PrefixNeedle::reach).reach();
    const int error = m_reader.tree().read(entry.path, [&](std::string_view piece) {
      hash.add(piece);
      if (!searches)
        return true;
      std::string_view all = piece;
      if (!window.empty())
        all = window.append(piece);
      for (std::size_t i = 0; i < m_needles.size(); ++i)
        file.holds[i] = file.holds[i] || m_needles[i].in(all);
      if (entry.size > piece.size())
        window = std::string(all.substr(all.size() - std::min(all.size(), 2 * reach)));
      return true;
    });
    if (error != 0)
      return tl::make_unexpected(error);
    file.checksum = hash.hex();
    return file;
  }

  void note_unread(const tree::Entry& entry, int error) {
    return error == ESTALE ? note(Kind::changing, entry.path) : note(Kind::unreadable, entry.path, errno_text(error));
  }

  void check_content(const tree::Entry& entry, const RecordedFile* recorded) {
    const bool has_checksum =
        recorded != nullptr && !recorded->installed().empty() && recorded->type != PathType::softlink;
    // A prefix in a file that is as its package has it is the package's own text, see prefixes_to_replace().
    const bool keeps_text = has_checksum && recorded->type == PathType::hardlink && !recorded->patched() &&
                            recorded->placeholder.empty() && !names_prefix(entry);
    auto read = read_file(entry, !keeps_text);
    if (read && keeps_text && read->checksum != recorded->installed())
      read = read_file(entry, true);
    if (!read)
      return note_unread(entry, read.error());
    auto& file = *read;
    file.recorded = recorded;
    file.starts = names_prefix(entry);
    file.sound = has_checksum && file.checksum == recorded->installed();
    const bool named = std::ranges::find(file.holds, true) != file.holds.end();
    std::unique_lock memory(m_memory, std::defer_lock);
    const bool packaged = recorded != nullptr && recorded->mode && !recorded->placeholder.empty();
    if ((named || packaged) && entry.size > k_large)
      memory.lock();
    if (named && entry.size > k_largest_patched)
      note(Kind::no_room, entry.path, "it is larger than " + format_bytes(k_largest_patched));
    if ((named || packaged) && entry.size <= k_largest_patched)
      if (const int error = m_reader.tree().read(entry.path, k_largest_patched, file.bytes); error != 0)
        return note_unread(entry, error);
    if (packaged && !recorded->sha256.empty())
      find_restored(m_needles, m_decision.replace.size(), file);
    if (has_checksum && !file.sound && !file.restored)
      note(Kind::altered, entry.path);
    file.follows = has_checksum && (file.sound || file.restored);
    count_uses(file);
    for (std::size_t i = 1 + m_decision.replace.size(); i < m_needles.size(); ++i)
      if (file.holds[i])
        note(Kind::other_prefix, entry.path, m_needles[i].prefix());
    replace_prefixes(entry, file);
  }

  void replace_prefixes(const tree::Entry& entry, const NamingFile& file) {
    const auto* recorded = file.recorded;
    const auto old = prefixes_to_replace(m_needles, m_decision.replace.size(), file);
    std::size_t count = 0;
    for (const auto& from : old)
      count += count_prefix(file.bytes, PrefixNeedle(from), k_most_edits);
    if (m_edits.fetch_add(count) + count > k_most_edits) {
      m_edits -= count;
      return note(Kind::no_room, entry.path, fmt::format("with it there are more than {} prefixes", k_most_edits));
    }
    auto replaced = replace_in(file, old, m_decision.right);
    for (const auto& from : replaced.named)
      if (from != m_decision.right)
        note_old_prefix(entry.path,
                        recorded != nullptr && from == recorded->placeholder ? "the placeholder of its build" : from);
    if (!replaced.no_room.empty())
      return note(Kind::no_room, entry.path, replaced.no_room);
    if (replaced.after == file.bytes) {
      if (file.follows && !file.sound)
        note(Kind::old_checksum, entry.path);
      if (file.follows && recorded->patched() && file.checksum != recorded->installed())
        note_checksum(entry.path, *recorded, file.checksum);
      return;
    }
    if (!may_change(entry))
      return note(Kind::no_room, entry.path, "it belongs to uid " + std::to_string(entry.uid));
    auto change = change_of(entry);
    change.before = file.checksum;
    change.after = sys::sha256(replaced.after);
    change.edits = std::move(replaced.edits);
    change.round = shows_prefix(file, m_decision) ? 1 : 0;
    if (file.follows)
      note_checksum(entry.path, *recorded, change.after);
    const std::scoped_lock lock(m_mutex);
    m_state.contents.push_back(std::move(change));
    if (entry.path.ends_with(".py"))
      m_changed_sources.push_back(entry.path);
  }

  void count_uses(const NamingFile& file) {
    const std::scoped_lock lock(m_mutex);
    for (std::size_t i = 0; i < m_uses.size(); ++i)
      m_uses[i].files += file.holds[i] ? 1 : 0;
  }

  void note_checksum(const std::string& path, const RecordedFile& recorded, const std::string& after) {
    const std::scoped_lock lock(m_mutex);
    m_checksums[m_reader.known(path)->record].push_back({path, recorded.installed(), after});
  }

  /// Reports files of packages that are missing. A compiled file may be missing, because Python makes it again. A link
  /// may stand for a file if it leads to the package's own file (conda's `always_softlink`).
  void find_missing() {
    for (const auto& record : m_reader.records())
      for (const auto& file : record.record.files) {
        if (file.type == PathType::directory || is_compiled(file.path))
          continue;
        const auto* entry = m_reader.entry(file.path);
        if (entry == nullptr)
          note(Kind::missing, file.path, record.record.name);
        else if (S_ISLNK(entry->mode) && file.type != PathType::softlink &&
                 (!entry->target.starts_with('/') || base_name(entry->target) != base_name(file.path)))
          note(Kind::altered, file.path, "a link");
        else if (entry->error_number == 0 && !S_ISREG(entry->mode) && !S_ISLNK(entry->mode))
          note(Kind::altered, file.path, S_ISDIR(entry->mode) ? "a directory" : "not a file");
      }
  }

  void correct_records() {
    for (std::size_t i = 0; i < m_checksums.size(); ++i) {
      if (m_checksums[i].empty())
        continue;
      const auto& record = m_reader.records()[i];
      auto edits = checksum_edits(record.record, record.text, m_checksums[i]);
      const auto after = edits ? apply_edits(record.text, *edits) : std::nullopt;
      if (!after) {
        note(Kind::bad_record, record.path, "its checksums cannot be corrected in place");
        continue;
      }
      const auto* entry = m_reader.entry(record.path);
      if (entry == nullptr || !may_change(*entry)) {
        note(Kind::bad_record, record.path, "it belongs to another user, and its checksums are left");
        continue;
      }
      auto change = change_of(*entry);
      change.before = sys::sha256(record.text);
      change.after = sys::sha256(*after);
      change.edits = std::move(*edits);
      m_state.contents.push_back(std::move(change));
    }
    // Compiled files whose source changes now have to go, too.
    std::ranges::sort(m_changed_sources);
    std::set<std::string> removed;
    for (const auto& change : m_state.compiled)
      removed.insert(change.path);
    for (const auto& entry : m_reader.entries())
      if (is_compiled(entry.path) && std::ranges::binary_search(m_changed_sources, source_of(entry.path)) &&
          !removed.contains(entry.path))
        remove_compiled(entry, "its source changes");
    // A file that is deleted needs no change of its mode.
    std::ranges::sort(m_state.compiled, {}, &plan::FileChange::path);
    std::erase_if(m_state.modes, [this](const plan::FileChange& change) {
      return std::ranges::binary_search(m_state.compiled, change.path, {}, &plan::FileChange::path);
    });
  }

  const EnvironmentReader& m_reader;
  const PrefixDecision& m_decision;
  const EnvironmentRequest& m_request;
  std::vector<PrefixNeedle> m_needles; ///< first the right prefix, then those to replace, then those that are left
  std::mutex m_mutex;
  std::mutex m_memory; ///< lets one thread hold a large file at a time
  std::atomic<std::size_t> m_edits = 0;
  std::vector<PrefixUse> m_uses;                     ///< one for each of m_needles
  std::vector<std::vector<NewChecksum>> m_checksums; ///< for each record
  std::vector<std::string> m_changed_sources;
  EnvironmentState m_state;
};

} // namespace

EnvironmentState read_environment(const EnvironmentReader& reader, const std::vector<PrefixUse>& uses,
                                  const PrefixDecision& decision, const EnvironmentRequest& request) {
  return EnvironmentCheck(reader, uses, decision, request).check(request.path);
}

} // namespace sharefs::conda
