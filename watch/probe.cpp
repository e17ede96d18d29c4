#include "base/text.hpp"
#include "watch/performance.hpp"

#include <algorithm>
#include <charconv>

namespace sharefs::watch {

namespace {

constexpr const char* k_threads = "/proc/fs/nfsd/threads";

std::string address_of(const sys::MountEntry& mount) {
  for (const auto& word : split(mount.super_options, ','))
    if (word.starts_with("addr="))
      return word.substr(5);
  return "";
}

std::optional<int> read_threads(sys::System& system) {
  const auto entry = system.entry({.path = k_threads, .read_bytes = 64});
  const auto text = trim(entry.content);
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  return entry.error_number != 0 || text.empty() || error != std::errc() ? std::nullopt : std::optional(threads);
}

} // namespace

Result<Reading> probe(sys::System& system) {
  const auto table = system.mounts();
  if (!table)
    return fail(table.error());
  const auto text = system.files().read_if_exists(sys::k_mountstats, sys::k_most_statistics);
  if (!text)
    return fail(text.error());
  auto statistics = sys::parse_mountstats(text->value_or(""));
  if (!statistics)
    return fail(statistics.error());
  Reading reading;
  reading.nfsd_threads = read_threads(system);
  std::map<std::pair<unsigned, unsigned>, std::size_t> known; // by superblock
  std::ranges::stable_sort(*statistics, {}, &MountStatistics::target);
  for (auto& one : *statistics) {
    const auto* mount = table->at(one.target); // of stacked ones, the one that is seen
    if (mount == nullptr || !sys::is_nfs(*mount) || mount->source != one.source)
      continue;
    const auto [place, is_new] = known.emplace(std::pair(mount->major, mount->minor), reading.mounts.size());
    if (is_new)
      reading.mounts.push_back({std::move(one), {}, address_of(*mount)});
    else if (auto& first = reading.mounts[place->second]; first.statistics.target != one.target)
      first.elsewhere.push_back(one.target);
  }
  return reading;
}

Reading between(const Reading& before, Reading now, std::chrono::seconds sampled) {
  std::map<std::string, const MountStatistics*> earlier; // by target
  for (const auto& one : before.mounts)
    earlier.emplace(one.statistics.target, &one.statistics);
  for (auto& one : now.mounts)
    if (const auto was = earlier.find(one.statistics.target); was != earlier.end())
      one.statistics = since(std::move(one.statistics), *was->second);
  now.sampled = sampled;
  return now;
}

} // namespace sharefs::watch
