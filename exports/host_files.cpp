#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/try.hpp"
#include "exports/host.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>

namespace sharefs::exports {

std::vector<std::string> exports_in_order(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) {
    return name.starts_with('.') || !name.ends_with(".exports") || name == ".exports";
  });
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) { return ::strverscmp(a.c_str(), b.c_str()) < 0; });
  return names;
}

namespace {

Diagnosis not_read(Severity severity, const std::string& path, std::string message, std::string hint) {
  return {severity, "SF126", path, std::move(message), std::move(hint), ""};
}

/// Returns a diagnosis if the path is not a file. In /etc/exports.d exportfs skips everything that is not a file, but
/// follows links; it opens /etc/exports whatever its type is.
std::optional<Diagnosis> check_is_file(const sys::Files& files, const std::string& path) {
  const auto entry = files.entry({.path = path});
  const auto target = entry.kind == sys::EntryKind::symlink ? files.entry({.path = path, .follow = true}) : entry;
  if (target.kind == sys::EntryKind::file || (entry.kind == sys::EntryKind::missing && path == k_exports_file))
    return std::nullopt;
  if (target.kind == sys::EntryKind::missing || target.error_number == ELOOP)
    return not_read(Severity::warning, path, "this link leads to no file: exportfs reads nothing here", "remove it");
  if (target.kind == sys::EntryKind::unknown) // the read that follows reports why
    return std::nullopt;
  const bool followed = entry.kind == sys::EntryKind::symlink || path == k_exports_file;
  const bool nothing = target.kind == sys::EntryKind::directory || target.resolved == "/dev/null";
  if (nothing || !followed)
    return not_read(Severity::warning, path,
                    nothing ? "this is no file: exportfs reads nothing here"
                            : "this is a pipe, socket or device: exportfs passes over it",
                    "remove it");
  return not_read(Severity::error, path, "this leads to a pipe, socket or device: exportfs may wait for it without end",
                  "remove it");
}

/// Reports SF159 if a user who is not root can change what exportfs reads there. In an image (`--root`) the owners are
/// those of the person who makes it.
void check_only_root_writes(const sys::Files& files, const std::string& path, Diagnoses& found) {
  constexpr std::uint32_t k_group_writes = 0020, k_others_write = 0002;
  const auto entry = files.entry({.path = path, .follow = true});
  if (!entry.exists())
    return;
  const auto without_acl = files.entry({.path = path, .follow = true, .acl = true});
  const bool foreign = files.is_live() && entry.uid != 0;
  const bool group = (entry.mode & k_group_writes) != 0 && entry.gid != 0;
  const bool by_acl = (entry.mode & ~without_acl.mode & k_group_writes) != 0; // the ACL's mask has more than its group
  if (foreign || group || by_acl || (entry.mode & k_others_write) != 0)
    found.push_back({Severity::error, "SF159", path,
                     fmt::format("others than root can change it (uid {}, gid {}, mode {:04o}), and so export any "
                                 "directory of this host to anybody",
                                 entry.uid, entry.gid, entry.mode),
                     fmt::format("look at what is in it, then `chown root: {0} && chmod go-w {0}`", shell_quote(path)),
                     ""});
}

} // namespace

Result<HostFiles> read_host_files(const sys::Files& files) {
  HostFiles host;
  const auto read = [&](const std::string& path) -> std::optional<std::string> {
    if (auto found = check_is_file(files, path)) {
      if (found->severity == Severity::error)
        host.waits_for = path;
      host.diagnoses.push_back(std::move(*found));
      return std::nullopt;
    }
    auto text = files.read_if_exists(path);
    if (!text)
      host.diagnoses.push_back(not_read(Severity::error, path, text.error().message, text.error().hint));
    if (!text || !*text)
      return std::nullopt;
    check_only_root_writes(files, path, host.diagnoses);
    host.files.push_back(parse(**text, path));
    return std::move(*text);
  };
  read(k_exports_file);
  auto names = files.list(k_exports_directory);
  if (!names && names.error().code == ErrorCode::timeout)
    return fail(names.error());
  if (!names && names.error().code != ErrorCode::not_found)
    host.diagnoses.push_back(not_read(Severity::error, k_exports_directory, names.error().message, names.error().hint));
  if (!names)
    return host;
  host.directory = true;
  check_only_root_writes(files, k_exports_directory, host.diagnoses);
  const auto ordered = exports_in_order(*names);
  for (const auto& name : *names)
    if (!name.starts_with('.') && std::find(ordered.begin(), ordered.end(), name) == ordered.end())
      host.diagnoses.push_back(
          not_read(Severity::warning, join_path(k_exports_directory, name),
                   "exportfs does not read this file: names in /etc/exports.d have to end in `.exports`",
                   fmt::format("rename it to `{}.exports`, or remove it", name)));
  for (const auto& name : ordered) {
    const auto path = join_path(k_exports_directory, name);
    auto text = read(path);
    if (path == k_own_file)
      host.own = std::move(text);
  }
  return host;
}

std::vector<std::string> own_directories(const HostFiles& host) {
  std::vector<std::string> directories;
  for (const auto& file : host.files)
    for (const auto& entry : file.read())
      if (file.name == k_own_file)
        directories.push_back(entry.directory);
  return directories;
}

Result<std::vector<Export>> read_etab(const sys::Files& files) {
  TRY_ASSIGN(const auto text, files.read_if_exists(k_etab));
  return parse_etab(text.value_or(""));
}

} // namespace sharefs::exports
