#include "base/path.hpp"

#include <algorithm>

namespace sharefs {

std::string normalize_path(std::string_view path, std::string_view directory) {
  std::string kept;
  const auto take = [&kept](std::string_view text) {
    while (!text.empty()) {
      const auto part = text.substr(0, text.find('/'));
      text.remove_prefix(std::min(text.size(), part.size() + 1));
      if (part == "..")
        kept.resize(kept.empty() ? 0 : kept.rfind('/'));
      else if (!part.empty() && part != ".")
        (kept += '/') += part;
    }
  };
  if (path.empty() || path.front() != '/')
    take(directory);
  take(path);
  return kept.empty() ? "/" : kept;
}

bool is_under(std::string_view path, std::string_view directory) {
  if (directory == "/")
    return !path.empty() && path.front() == '/';
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

std::string parent_path(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos || slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::vector<std::string> paths_below(std::string_view there, std::string_view path) {
  std::vector<std::string> paths;
  for (std::string at(path); at != "/" && !is_under(there, at); at = parent_path(at))
    paths.insert(paths.begin(), at);
  return paths;
}

std::size_t path_depth(std::string_view path) {
  return path == "/" ? 0 : static_cast<std::size_t>(std::ranges::count(path, '/'));
}

std::string join_path(std::string_view directory, std::string_view name) {
  if (!name.empty() && name.front() == '/')
    return std::string(name);
  if (name.empty())
    return std::string(directory);
  std::string out(directory);
  if (out.empty() || out.back() != '/')
    out += '/';
  return out.append(name);
}

} // namespace sharefs
