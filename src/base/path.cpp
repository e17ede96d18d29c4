#include "base/path.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace sharefs {

std::string normalize_path(std::string_view path, std::string_view directory) {
  std::vector<std::string> kept;
  const auto take = [&kept](std::string_view text) {
    for (auto& part : split(text, '/')) {
      if (part.empty() || part == ".")
        continue;
      if (part != "..")
        kept.push_back(std::move(part));
      else if (!kept.empty())
        kept.pop_back();
    }
  };
  if (path.empty() || path.front() != '/')
    take(directory);
  take(path);
  return "/" + join(kept, "/");
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
