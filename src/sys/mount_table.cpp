#include "sys/mount_table.hpp"

#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <libmount.h>
#include <map>
#include <memory>
#include <sys/sysmacros.h>
#include <unordered_map>

namespace sharefs::sys {
namespace {

/// What the kernel appends to a removed mount point: in mountinfo, and in older forms of the table.
constexpr std::array<std::string_view, 2> k_deleted_marks{"//deleted", "\\040(deleted)"};

bool strip_deleted_mark(std::string_view& raw_target) {
  for (const std::string_view mark : k_deleted_marks)
    if (raw_target.size() > mark.size() && raw_target.ends_with(mark)) {
      raw_target.remove_suffix(mark.size());
      return true;
    }
  return false;
}

/// libmount resolves the name of what it parses: a relative one would make it touch the working directory, which may
/// lie on a dead mount.
constexpr const char* k_mountinfo_path = "/proc/self/mountinfo";

std::string text(const char* value) {
  return value == nullptr ? std::string() : std::string(value);
}

/// libmount drops one of the marks and keeps the other, so the mount points are read here: by id, decoded.
struct Target {
  std::string path;
  bool deleted = false;
};

std::map<int, Target> read_targets(const std::string& mountinfo) {
  std::map<int, Target> targets;
  for (const std::string& line : split_lines(mountinfo)) {
    const std::vector<std::string> words = split(line, ' ');
    int id = 0;
    if (words.size() < 5 || std::from_chars(words[0].data(), words[0].data() + words[0].size(), id).ec != std::errc())
      continue;
    std::string_view raw = words[4];
    const bool deleted = strip_deleted_mark(raw);
    targets[id] = {decode_octal(raw), deleted};
  }
  return targets;
}

/// Called by libmount for a line that it cannot read; the number of the first one is kept in the table's user pointer.
int note_bad_line(libmnt_table* table, const char*, int line) {
  auto* first_bad = static_cast<int*>(mnt_table_get_userdata(table));
  if (*first_bad == 0)
    *first_bad = line;
  return -EINVAL;
}

MountEntry entry_from(libmnt_fs* fs, const std::map<int, Target>& targets) {
  MountEntry entry;
  entry.id = mnt_fs_get_id(fs);
  entry.parent = mnt_fs_get_parent_id(fs);
  const dev_t device = mnt_fs_get_devno(fs);
  entry.major = major(device);
  entry.minor = minor(device);
  entry.root = text(mnt_fs_get_root(fs));
  entry.options = text(mnt_fs_get_vfs_options(fs));
  entry.optional_fields = std::string(trim(text(mnt_fs_get_optional_fields(fs))));
  entry.fs_type = text(mnt_fs_get_fstype(fs));
  entry.source = text(mnt_fs_get_source(fs));
  entry.super_options = text(mnt_fs_get_fs_options(fs));
  if (const auto found = targets.find(entry.id); found != targets.end()) {
    entry.target = found->second.path;
    entry.deleted = found->second.deleted;
  } else {
    entry.target = text(mnt_fs_get_target(fs));
  }
  return entry;
}

/// The mount that the lookup of an absolute path starts in: the one whose parent is out of sight, at "/".
const MountEntry* root_of(const std::vector<MountEntry>& entries) {
  std::unordered_map<int, int> count;
  for (const MountEntry& entry : entries)
    ++count[entry.id];
  for (const MountEntry& entry : entries)
    if (entry.target == "/" && !entry.deleted && (entry.parent == entry.id || count.count(entry.parent) == 0))
      return &entry;
  return nullptr;
}

std::size_t path_depth(const std::string& path) {
  return path == "/" ? 0 : static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
}

} // namespace

bool is_nfs(const MountEntry& mount) {
  return mount.fs_type == "nfs" || mount.fs_type == "nfs4";
}

bool is_shared_fs_type(std::string_view fs_type) {
  // Names as /proc/filesystems and the mount helpers of each file system have them.
  static constexpr std::string_view k_shared[] = {
      "nfs", "nfs4", "lustre", "gpfs", "ceph", "beegfs", "beegfs_nodev", "fhgfs", "cifs",     "smb3",   "smbfs",
      "9p",  "afs",  "ocfs2",  "gfs2", "acfs", "pvfs2",  "panfs",        "coda",  "virtiofs", "autofs", "wekafs",
  };
  // The part after the dot of `fuse.NAME`.
  static constexpr std::string_view k_shared_fuse[] = {
      "sshfs",  "glusterfs", "juicefs",  "ceph",      "ceph-fuse", "s3fs",     "gcsfuse",      "goofys",   "rclone",
      "mfs",    "moosefs",   "saunafs",  "lizardfs",  "seaweedfs", "alluxio",  "alluxio-fuse", "dfuse",    "curvefs",
      "cubefs", "chubaofs",  "blobfuse", "blobfuse2", "ossfs",     "obsfs",    "cosfs",        "mount-s3", "davfs",
      "davfs2", "smbnetfs",  "quobyte",  "fuse_dfs",  "cvmfs2",    "xtreemfs", "orangefs",     "hf3fs",
  };
  if (const auto dot = fs_type.find('.'); dot != std::string_view::npos && fs_type.substr(0, dot).starts_with("fuse"))
    return std::find(std::begin(k_shared_fuse), std::end(k_shared_fuse), fs_type.substr(dot + 1)) !=
           std::end(k_shared_fuse);
  return std::find(std::begin(k_shared), std::end(k_shared), fs_type) != std::end(k_shared);
}

Result<MountTable> MountTable::parse(const std::string& mountinfo) {
  std::vector<MountEntry> entries;
  if (mountinfo.empty())
    return MountTable();
  const auto free_table = [](libmnt_table* table) { mnt_unref_table(table); };
  const auto close_file = [](FILE* file) { std::fclose(file); };
  const std::unique_ptr<libmnt_table, decltype(free_table)> table(mnt_new_table(), free_table);
  // fmemopen with "r" does not write to the buffer.
  const std::unique_ptr<FILE, decltype(close_file)> file(
      ::fmemopen(const_cast<char*>(mountinfo.data()), mountinfo.size(), "r"), close_file);
  if (!table || !file)
    return fail(errno_error(errno, "cannot read the mount table"));
  int first_bad = 0;
  mnt_table_set_userdata(table.get(), &first_bad);
  mnt_table_set_parser_errcb(table.get(), note_bad_line);
  const int status = mnt_table_parse_stream(table.get(), file.get(), k_mountinfo_path);
  if (status != 0 || first_bad != 0)
    return fail(ErrorCode::failed, "mountinfo:" + std::to_string(first_bad) + ": not a line of a mount table");

  const std::map<int, Target> targets = read_targets(mountinfo);
  const auto free_cursor = [](libmnt_iter* cursor) { mnt_free_iter(cursor); };
  const std::unique_ptr<libmnt_iter, decltype(free_cursor)> cursor(mnt_new_iter(MNT_ITER_FORWARD), free_cursor);
  for (libmnt_fs* fs = nullptr; mnt_table_next_fs(table.get(), cursor.get(), &fs) == 0;) {
    entries.push_back(entry_from(fs, targets));
    if (!entries.back().target.starts_with('/'))
      return fail(ErrorCode::failed, "mountinfo: the mount point `" + entries.back().target + "` is not absolute");
  }
  return MountTable(std::move(entries));
}

std::string MountTable::format() const {
  std::string text;
  for (const MountEntry& entry : m_entries) {
    const std::string target = encode_octal(entry.target) + (entry.deleted ? "//deleted" : "");
    const std::string optional = entry.optional_fields.empty() ? "" : entry.optional_fields + " ";
    text += std::to_string(entry.id) + " " + std::to_string(entry.parent) + " " + std::to_string(entry.major) + ":" +
            std::to_string(entry.minor) + " " + encode_octal(entry.root) + " " + target + " " + entry.options + " " +
            optional + "- " + entry.fs_type + " " + encode_octal(entry.source) + " " + entry.super_options + "\n";
  }
  return text;
}

const MountEntry* MountTable::owner_of(std::string_view path) const {
  const MountEntry* current = root_of(m_entries);
  // Each step goes one mount down; a table that goes in circles is no reason to do so here.
  for (std::size_t steps = 0; current != nullptr && steps < m_entries.size(); ++steps) {
    const MountEntry* next = nullptr;
    for (const MountEntry& entry : m_entries) {
      if (entry.parent != current->id || &entry == current || entry.deleted || !is_under(path, entry.target))
        continue;
      // A lookup starts *in* the root mount, below whatever was mounted over "/" later, except in an initramfs.
      if (entry.target == "/" && current->fs_type != "rootfs")
        continue;
      // The shortest: it hides siblings below it, which were mounted before it.
      if (next == nullptr || entry.target.size() <= next->target.size())
        next = &entry;
    }
    if (next == nullptr)
      break;
    current = next;
  }
  return current;
}

const MountEntry* MountTable::at(std::string_view target) const {
  const MountEntry* owner = owner_of(target);
  return owner != nullptr && owner->target == target ? owner : nullptr;
}

std::vector<const MountEntry*> MountTable::below(std::string_view target) const {
  struct Node {
    const MountEntry* entry;
    std::size_t depth;
    std::size_t blockers = 0; ///< mounts that have to go before this one
    bool taken = false;
    std::vector<std::size_t> frees{};
  };
  std::vector<Node> nodes;
  for (const MountEntry& entry : m_entries)
    if (!entry.deleted && is_under(entry.target, target))
      nodes.push_back({&entry, path_depth(entry.target)});

  std::unordered_map<int, std::vector<std::size_t>> by_parent;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    by_parent[nodes[i].entry->parent].push_back(i);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    // Its children, and siblings that hide it (mounted later, on a directory above its mount point).
    if (const auto children = by_parent.find(nodes[i].entry->id); children != by_parent.end())
      for (const std::size_t child : children->second)
        if (child != i)
          nodes[child].frees.push_back(i), ++nodes[i].blockers;
    for (const std::size_t sibling : by_parent[nodes[i].entry->parent])
      if (nodes[sibling].entry->target.size() < nodes[i].entry->target.size() &&
          is_under(nodes[i].entry->target, nodes[sibling].entry->target) && nodes[sibling].entry != nodes[i].entry)
        nodes[sibling].frees.push_back(i), ++nodes[i].blockers;
  }

  std::vector<const MountEntry*> result;
  while (result.size() < nodes.size()) {
    std::size_t best = nodes.size();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].taken)
        continue;
      const bool free = nodes[i].blockers == 0;
      if (best == nodes.size() || (free && (nodes[best].blockers != 0 || nodes[i].depth >= nodes[best].depth)))
        best = i;
    }
    nodes[best].taken = true;
    result.push_back(nodes[best].entry);
    for (const std::size_t freed : nodes[best].frees)
      --nodes[freed].blockers;
  }
  return result;
}

} // namespace sharefs::sys
