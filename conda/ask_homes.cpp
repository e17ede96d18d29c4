#include "conda/ask_homes.hpp"

#include "conda/in_parallel.hpp"

#include <map>

namespace sharefs::conda {

namespace {

/// Mount point of the network mount that the path lies on; empty: none. Below an autofs each home is a mount of its
/// own.
std::string shared_mount(const sys::MountTable& mounts, const std::string& path) {
  const auto* owner = path.empty() ? nullptr : mounts.owner_of(path);
  const bool shared = owner != nullptr && sys::is_shared_fs_type(owner->fs_type) && owner->fs_type != "autofs";
  return shared ? owner->target : std::string();
}

} // namespace

void ask_homes(const sys::MountTable& mounts, const std::vector<std::string>& paths,
               const std::function<bool(std::size_t)>& ask, const std::function<void(std::size_t, std::size_t)>& skip) {
  std::map<std::string, std::size_t> scouts; // mount point -> index
  std::vector<std::size_t> first;
  std::vector<std::pair<std::size_t, std::size_t>> later; // index, that of its scout
  for (std::size_t index = 0; index < paths.size(); ++index) {
    const auto mount = shared_mount(mounts, paths[index]);
    if (mount.empty())
      first.push_back(index);
    else if (const auto [scout, is_new] = scouts.try_emplace(mount, index); is_new)
      first.push_back(index);
    else
      later.emplace_back(index, scout->second);
  }
  std::vector<char> answered(paths.size(), 0);
  in_parallel(first.size(), [&](std::size_t turn) { answered[first[turn]] = ask(first[turn]) ? 1 : 0; });
  in_parallel(later.size(), [&](std::size_t turn) {
    const auto [index, scout] = later[turn];
    if (answered[scout] != 0)
      ask(index);
    else
      skip(index, scout);
  });
}

} // namespace sharefs::conda
