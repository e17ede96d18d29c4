#include "sys/programs/checked_program.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/fs/walk.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <elf.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sharefs::sys {

namespace {

Error refusal(const std::string& path, const std::string& why) {
  return {ErrorCode::permission, path + " is not run: " + why,
          "let it and its directories belong to its user, and take the write permission from others", ""};
}

/// Explains why somebody else could write to the file or directory; empty: nobody could.
std::string find_other_writers(const struct stat& status, std::optional<std::uint32_t> own_group) {
  if (status.st_uid != 0 && status.st_uid != ::geteuid())
    return fmt::format("it belongs to uid {}", status.st_uid);
  const bool group = (status.st_mode & S_IWGRP) != 0 && status.st_gid != 0 && own_group != status.st_gid;
  if (!group && (status.st_mode & S_IWOTH) == 0)
    return {};
  return "others may write to it (mode " + format_mode(status.st_mode & 07777U) + ")";
}

/// Returns the program loader that an ELF program names in its header PT_INTERP; empty: there is none, or it is a
/// script.
std::string loader_of(int fd) {
  Elf64_Ehdr header{};
  if (::pread(fd, &header, sizeof header, 0) != sizeof header ||
      std::string_view(ELFMAG) != std::string_view(reinterpret_cast<const char*>(header.e_ident), SELFMAG) ||
      header.e_ident[EI_CLASS] != ELFCLASS64)
    return {};
  constexpr int k_most_headers = 128;
  for (int i = 0; i < std::min<int>(header.e_phnum, k_most_headers); ++i) {
    Elf64_Phdr segment{};
    const auto at = static_cast<off_t>(header.e_phoff) + i * static_cast<off_t>(sizeof segment);
    if (::pread(fd, &segment, sizeof segment, at) != sizeof segment)
      return {};
    std::array<char, 256> name{};
    if (segment.p_type == PT_INTERP && segment.p_filesz < name.size() &&
        ::pread(fd, name.data(), segment.p_filesz, static_cast<off_t>(segment.p_offset)) > 0)
      return name.data();
  }
  return {};
}

bool is_of_system(const std::string& loader) {
  constexpr std::array<std::string_view, 3> k_places{"/lib", "/lib64", "/usr"};
  return normalize_path(loader) == loader &&
         std::ranges::any_of(k_places, [&](std::string_view place) { return is_under(loader, std::string(place)); });
}

} // namespace

Error exec_checked(const CheckedProgram& program, const std::vector<char*>& argv, const std::vector<char*>& envp) {
  const auto whole = join_path(program.directory, program.path);
  const auto found = walk_from("/", program.directory, {.follow_last = true});
  if (!found)
    return found.error();
  const auto differs = [](const FileIdentity& expected, const struct stat& status, const std::string& path) {
    const auto what = difference(expected, status);
    return what.empty() ? std::optional<Error>() : conflict_error(path, "what the plan was made for", what);
  };
  if (!found->is_directory())
    return {ErrorCode::conflict, program.directory + ": expected a directory, found " + found->text(), "", ""};
  if (auto other = differs(program.directory_identity, found->status, program.directory))
    return *other;
  // From here on everything is checked on descriptors: the directory, the directories below it, the program.
  if (const auto why = find_other_writers(found->status, program.own_group); !why.empty())
    return refusal(program.directory, why);
  struct stat status{};
  for (auto end = program.path.find('/'); end != std::string::npos; end = program.path.find('/', end + 1)) {
    const auto above = program.path.substr(0, end);
    const auto directory = open_below(found->fd.get(), above.c_str(), O_PATH | O_DIRECTORY);
    if (!directory || !stat_open(directory.get(), status))
      return errno_error(errno, join_path(program.directory, above));
    if (const auto why = find_other_writers(status, program.own_group); !why.empty())
      return refusal(join_path(program.directory, above), why);
  }
  const auto fd = open_below(found->fd.get(), program.path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!fd || ::fstat(fd.get(), &status) != 0)
    return errno_error(errno, whole);
  if (auto other = differs(program.identity, status, whole))
    return *other;
  if (!S_ISREG(status.st_mode) || (status.st_mode & (S_ISUID | S_ISGID)) != 0)
    return refusal(whole, "it is no ordinary program");
  if (const auto why = find_other_writers(status, program.own_group); !why.empty())
    return refusal(whole, why);
  if (::fchdir(found->fd.get()) != 0)
    return errno_error(errno, program.directory);
  // A program finds the files beside it by the path that it was run with, and the loader finds $ORIGIN libraries by the
  // real path of the program. Others could rename that path, so the loader gets one below /proc/self/cwd, which they
  // cannot rename.
  auto self = "/proc/self/cwd/" + program.path;
  std::vector<char*> words = argv;
  words.front() = self.data();
  if (auto loader = loader_of(fd.get()); !loader.empty()) {
    if (!is_of_system(loader))
      return refusal(whole, "it names a program loader that is none of the system");
    words.insert(words.begin(), loader.data());
    ::execve(loader.c_str(), words.data(), envp.data());
    return errno_error(errno, "cannot run " + whole);
  }
  const Fd kept(
      ::fcntl(fd.get(), F_DUPFD, 3)); // without FD_CLOEXEC: the interpreter of a script reads it from this descriptor
  ::syscall(SYS_execveat, kept.get(), "", words.data(), envp.data(), AT_EMPTY_PATH);
  return errno_error(errno, "cannot run " + whole);
}

} // namespace sharefs::sys
