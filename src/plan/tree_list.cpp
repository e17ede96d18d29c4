#include "plan/tree_list.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "plan/action.hpp"
#include "sys/process/child.hpp"

#include <cerrno>
#include <charconv>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace sharefs::plan {

namespace {

constexpr const char* k_list_file = "list";

std::string escaped_path(std::string_view path) {
  std::string out;
  for (const char byte : path) {
    const bool plain = static_cast<unsigned char>(byte) > ' ' && byte != '\\' && byte != '\x7f';
    out += plain ? std::string(1, byte) : fmt::format("\\{:03o}", static_cast<unsigned char>(byte));
  }
  return out;
}

std::string fields_of(const TreeRights& rights) {
  const auto acl = [](const std::string& text) { return text.empty() ? "-" : text; };
  return fmt::format("{} {:o} {} {}", rights.gid, rights.mode, acl(rights.acl), acl(rights.default_acl));
}

template <class Number> bool read_number(const std::string& text, Number& number, int base) {
  const auto* end = text.data() + text.size();
  return std::from_chars(text.data(), end, number, base).ptr == end && !text.empty();
}

bool read_fields(const std::string* fields, TreeRights& rights) {
  const auto acl = [](const std::string& text) { return text == "-" ? std::string() : text; };
  rights.acl = acl(fields[2]);
  rights.default_acl = acl(fields[3]);
  return read_number(fields[0], rights.gid, 10) && read_number(fields[1], rights.mode, 8);
}

} // namespace

TreeRights rights_for_group(const TreeRights& before, bool directory, std::uint32_t gid, std::uint32_t mode) {
  TreeRights after = before;
  after.gid = gid;
  const auto bits = (before.mode >> 6U) & (mode >> 3U) & 7U; // what the owner has
  if (before.acl.empty()) {
    after.mode |= bits << 3U;
  } else {
    std::uint32_t mask = 0;
    after.acl = acl_with_group(before.acl, bits, mask);
    after.mode = (before.mode & ~070U) | mask << 3U;
    if (same_acl(before.acl, after.acl)) {
      after.acl = before.acl;
      after.mode = before.mode;
    }
  }
  if (directory) {
    after.mode |= mode & S_ISGID;
    after.default_acl = default_acl(mode & (0770U | (before.mode & 7U)));
  }
  return after;
}

std::string text_of(const TreeCounts& counts, bool reverse) {
  std::vector<std::string> left;
  const auto add = [&](std::uint64_t count, const char* what, const char* why) {
    if (count > 0)
      left.push_back(count_of(count, what) + why);
  };
  add(counts.several_names, "file", " with several names (hard links), of which others may lie elsewhere");
  add(counts.programs, "program", " with set-id bits or capabilities");
  add(counts.mounts, "mount", "");
  add(counts.other, "special file", "");
  add(counts.since, "path", reverse ? " changed, moved or deleted since" : " changed meanwhile");
  auto text = fmt::format("{} {}", count_of(counts.changed, "path"), reverse ? "given back" : "changed");
  if (!left.empty())
    text += fmt::format("; left as they are: {} ({}{})", join(left, ", "), join(counts.named, ", "),
                        counts.named.size() == TreeCounts::k_most_named ? ", ..." : "");
  return text;
}

std::string line_of(const TreeChange& change) {
  return fmt::format("{} {} {} {}\n", change.inode, fields_of(change.before), fields_of(change.after),
                     escaped_path(change.path));
}

std::optional<TreeChange> change_of(std::string_view line) {
  const auto fields = split(line, ' ');
  TreeChange change;
  if (fields.size() != 10 || fields[9].empty() || !read_number(fields[0], change.inode, 10) ||
      !read_fields(&fields[1], change.before) || !read_fields(&fields[5], change.after))
    return std::nullopt;
  change.path = decode_octal(fields[9]);
  return change;
}

Result<TreeList> TreeList::open(const sys::Files& files, const std::string& path, bool make) {
  TreeList list;
  list.m_path = join_path(path, k_list_file);
  auto directory = make ? PrivateDirectory::make(files, path).map([](PrivateDirectory&& made) {
    return std::optional(std::move(made));
  })
                        : PrivateDirectory::open(files, path);
  if (!directory)
    return fail(directory.error());
  if (!*directory)
    return list;
  auto file = (*directory)->open_file(k_list_file, O_RDWR | O_APPEND | (make ? O_CREAT : 0));
  if (!file)
    return !make && file.error().code == ErrorCode::not_found ? Result<TreeList>(std::move(list)) : fail(file.error());
  list.m_file = std::move(*file);
  return list;
}

Result<void> TreeList::remove(const sys::Files& files, const std::string& path) {
  const auto parent = PrivateDirectory::open(files, parent_path(path));
  if (!parent)
    return fail(parent.error());
  return *parent ? (*parent)->remove(base_name(path)) : Result<void>{};
}

Result<void> TreeList::append(const std::string& lines) const {
  // Begun by the end of a line: one that a killed process leaves incomplete, even while this one is at work, is passed
  // over, and takes none of these with it.
  if (!sys::write_all(m_file.get(), "\n" + lines) || ::fdatasync(m_file.get()) != 0)
    return fail(errno_error(errno, m_path, "what cannot be noted for undo is not changed"));
  return {};
}

Result<void> TreeList::for_each_backwards(const std::function<void(const TreeChange&)>& visit) const {
  struct stat status{};
  if (::fstat(m_file.get(), &status) != 0)
    return fail(errno_error(errno, m_path));
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0)
    return {};
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, m_file.get(), 0);
  if (memory == MAP_FAILED)
    return fail(errno_error(errno, m_path));
  std::string_view rest(static_cast<const char*>(memory), size);
  while (!rest.empty()) {
    const auto newline = rest.size() > 1 ? rest.rfind('\n', rest.size() - 2) : std::string_view::npos;
    const auto begin = newline == std::string_view::npos ? 0 : newline + 1;
    const auto line = rest.substr(begin);
    if (line.ends_with('\n'))
      if (const auto change = change_of(line.substr(0, line.size() - 1)))
        visit(*change);
    rest = rest.substr(0, begin);
  }
  ::munmap(memory, size);
  return {};
}

} // namespace sharefs::plan
