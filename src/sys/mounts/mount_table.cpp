#include "sys/mounts/mount_table.hpp"

#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <functional>
#include <optional>

namespace sharefs::sys {
namespace {

/// Removes the word before the next blank from `rest` and returns it. The word is empty between two blanks, because a
/// source can be empty.
std::string_view take_word(std::string_view& rest) {
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

template <class Number> bool read_number(std::string_view word, Number& into) {
  const auto number = parse_number<Number>(word);
  into = number.value_or(0);
  return number.has_value();
}

/// Reads one line (proc_pid_mountinfo(5)): ID PARENT MAJOR:MINOR ROOT TARGET OPTIONS [OPTIONAL...] - TYPE SOURCE
/// SUPER_OPTIONS. The kernel escapes blanks within a field, so the first dash between blanks ends the optional fields.
std::optional<MountEntry> parse_entry(std::string_view line) {
  constexpr std::string_view k_dash = " - ";
  const std::size_t dash = line.find(k_dash);
  if (dash == std::string_view::npos)
    return std::nullopt;
  std::string_view mount = line.substr(0, dash);
  std::string_view super = line.substr(dash + k_dash.size());

  MountEntry entry;
  const bool numbered = read_number(take_word(mount), entry.id) && read_number(take_word(mount), entry.parent);
  std::string_view device = take_word(mount);
  const std::size_t colon = std::min(device.find(':'), device.size());
  if (!numbered || !read_number(device.substr(0, colon), entry.major) ||
      !read_number(device.substr(std::min(colon + 1, device.size())), entry.minor))
    return std::nullopt;
  entry.root = decode_octal(take_word(mount));
  entry.target = decode_octal(take_word(mount));
  entry.options = decode_octal(take_word(mount));
  entry.fs_type = decode_octal(take_word(super));
  entry.source = decode_octal(take_word(super));
  entry.super_options = decode_octal(super);
  if (!entry.target.starts_with('/') || entry.options.empty() || entry.fs_type.empty() || entry.super_options.empty())
    return std::nullopt;
  return entry;
}

} // namespace

std::optional<std::string> option_value(std::string_view options, std::string_view name) {
  std::optional<std::string> value;
  for (const auto& word : split(options, ','))
    if (const auto equals = std::min(word.find('='), word.size()); std::string_view(word).substr(0, equals) == name)
      value = word.substr(std::min(equals + 1, word.size()));
  return value;
}

MountTable::MountTable(std::vector<MountEntry> entries) {
  auto index = std::make_shared<Index>();
  index->entries = std::move(entries);
  std::set<int> ids;
  for (const MountEntry& entry : index->entries)
    ids.insert(entry.id);
  for (const MountEntry& entry : index->entries) {
    if (may_hang(entry.fs_type))
      index->hanging.insert(entry.target);
    const bool parent_unseen = entry.parent == entry.id || !ids.contains(entry.parent);
    if (index->root == nullptr && entry.target == "/" && parent_unseen)
      index->root = &entry;
    index->children[entry.parent].insert_or_assign(entry.target, &entry);
  }
  m_index = std::move(index);
}

Result<MountTable> MountTable::parse(std::string_view mountinfo) {
  std::vector<MountEntry> entries;
  entries.reserve(static_cast<std::size_t>(std::ranges::count(mountinfo, '\n')) + 1);
  for (std::size_t number = 1; !mountinfo.empty(); ++number) {
    const std::size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    const std::string_view line = mountinfo.substr(0, end);
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    if (line.empty())
      continue;
    auto entry = parse_entry(line);
    if (!entry)
      return fail(ErrorCode::failed, "mountinfo:" + std::to_string(number) + ": not a line of a mount table");
    entries.push_back(std::move(*entry));
  }
  return MountTable(std::move(entries));
}

const MountEntry* MountTable::owner_of(std::string_view path) const {
  const MountEntry* current = m_index->root;
  // Each step goes down to one mount. The number of steps is limited, because a damaged table could contain a cycle.
  for (std::size_t steps = 0; current != nullptr && steps < entries().size(); ++steps) {
    const auto children = m_index->children.find(current->id);
    const MountEntry* next = nullptr;
    // The shortest target is tried first, because it hides its siblings further down, which were mounted before it. A
    // lookup starts *in* the root mount, beneath later mounts over "/", except in an initramfs.
    const bool skip_root = current->fs_type != "rootfs";
    for (std::size_t end = 0;
         children != m_index->children.end() && next == nullptr && end != std::string_view::npos;) {
      const std::string_view target = end == 0 ? std::string_view("/") : path.substr(0, end);
      if (const auto child = children->second.find(target);
          child != children->second.end() && child->second != current && !(end == 0 && skip_root))
        next = child->second;
      if (end == path.size() || path == "/")
        break;
      end = std::min(path.find('/', end + 1), path.size());
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

bool MountTable::is_bind(std::string_view target, std::string_view path) const {
  const MountEntry *mount = at(target), *owner = owner_of(path);
  return mount != nullptr && owner != nullptr && mount != owner && mount->major == owner->major &&
         mount->minor == owner->minor &&
         mount->root == normalize_path(owner->root + "/" + std::string(path.substr(owner->target.size())));
}

std::vector<const MountEntry*> MountTable::below(std::string_view target) const {
  std::vector<const MountEntry*> deepest_first;
  for (auto entry = entries().rbegin(); entry != entries().rend(); ++entry)
    if (is_under(entry->target, target))
      deepest_first.push_back(&*entry);
  std::ranges::stable_sort(deepest_first, std::greater(),
                           [](const MountEntry* entry) { return path_depth(entry->target); });

  std::vector<const MountEntry*> order;
  std::set<const MountEntry*> taken;
  // A mount comes after the mounts on it, and after siblings that hide it, which were mounted later on a directory
  // above it.
  const std::function<void(const MountEntry&)> take = [&](const MountEntry& entry) {
    if (!is_under(entry.target, target) || !taken.insert(&entry).second)
      return;
    if (const auto children = m_index->children.find(entry.id); children != m_index->children.end())
      for (const auto& [path, child] : children->second)
        take(*child);
    if (const auto siblings = m_index->children.find(entry.parent); siblings != m_index->children.end())
      for (std::string above = entry.target; above != "/";) {
        above = parent_path(above);
        const auto sibling = siblings->second.find(above);
        if (sibling != siblings->second.end() && sibling->second->id != entry.parent)
          take(*sibling->second);
      }
    order.push_back(&entry);
  };
  for (const MountEntry* entry : deepest_first)
    take(*entry);
  return order;
}

} // namespace sharefs::sys
