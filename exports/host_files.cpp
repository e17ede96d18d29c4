#include "base/path.hpp"
#include "exports/host.hpp"

#include <algorithm>
#include <cstring>

namespace sharefs::exports {

std::vector<std::string> exports_in_order(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) {
    return name.starts_with('.') || !name.ends_with(".exports") || name == ".exports";
  });
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) { return ::strverscmp(a.c_str(), b.c_str()) < 0; });
  return names;
}

Result<HostFiles> read_host_files(const sys::Files& files) {
  HostFiles host;
  const auto read = [&](const std::string& path) -> Result<std::optional<std::string>> {
    auto text = files.read_if_exists(path);
    if (!text)
      return fail(text.error());
    if (*text)
      host.files.push_back(parse(**text, path));
    return *text;
  };
  if (const auto text = read(k_exports_file); !text)
    return fail(text.error());
  auto names = files.list(k_exports_directory);
  if (!names && names.error().code != ErrorCode::not_found)
    return fail(names.error());
  if (!names)
    return host;
  host.directory = true;
  const auto ordered = exports_in_order(*names);
  for (const auto& name : *names)
    if (!name.starts_with('.') && std::find(ordered.begin(), ordered.end(), name) == ordered.end())
      host.unread.push_back(join_path(k_exports_directory, name));
  for (const auto& name : ordered) {
    const auto path = join_path(k_exports_directory, name);
    const auto text = read(path);
    if (!text)
      return fail(text.error());
    if (path == k_own_file)
      host.own = *text;
  }
  return host;
}

Result<std::vector<Export>> read_etab(const sys::Files& files) {
  const auto text = files.read_if_exists(k_etab);
  if (!text)
    return fail(text.error());
  return parse_etab(text->value_or(""));
}

} // namespace sharefs::exports
