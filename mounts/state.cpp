#include "mounts/state.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace sharefs::mounts {

namespace {

bool lost_write_access(const std::vector<Difference>& differences) {
  return std::any_of(differences.begin(), differences.end(),
                     [](const Difference& one) { return one.key == "access" && one.asked == "rw"; });
}

/// NFS mounts at the same target that `top` hides: each is the parent of the one above it.
std::size_t stacked_below(const sys::MountTable& table, const sys::MountEntry& top) {
  std::size_t count = 0;
  const auto* above = &top;
  for (std::size_t guard = table.entries().size(); guard > 0; --guard) {
    const auto& entries = table.entries();
    const auto parent = std::find_if(entries.begin(), entries.end(), [&](const sys::MountEntry& other) {
      return other.id == above->parent && other.target == top.target && other.id != above->id;
    });
    if (parent == entries.end())
      break;
    count += sys::is_nfs(*parent) ? 1U : 0U;
    above = &*parent;
  }
  return count;
}

} // namespace

Health health_of(const sys::PathProbe& probe) {
  switch (probe.health) {
  case sys::PathHealth::ok:
  case sys::PathHealth::full:
    return probe.latency > k_slow_after ? Health::slow : Health::healthy;
  case sys::PathHealth::hung:
    return Health::hung;
  case sys::PathHealth::stale:
    return Health::stale;
  case sys::PathHealth::denied:
    return Health::denied;
  case sys::PathHealth::read_only:
    return Health::read_only;
  case sys::PathHealth::missing:
  case sys::PathHealth::failed:
    return Health::failed;
  }
  return Health::failed;
}

const char* to_string(Health health) {
  constexpr auto k_names = std::to_array<std::pair<Health, const char*>>({
      {Health::healthy, "healthy"},
      {Health::slow, "slow"},
      {Health::hung, "hung"},
      {Health::stale, "stale"},
      {Health::denied, "denied"},
      {Health::read_only, "read-only"},
      {Health::missing, "missing"},
      {Health::wrong_source, "wrong source"},
      {Health::backgrounding, "backgrounding"},
      {Health::autofs_idle, "autofs-idle"},
      {Health::failed, "failed"},
  });
  for (const auto& [value, name] : k_names)
    if (value == health)
      return name;
  return "failed";
}

bool is_good(Health health) {
  return health == Health::healthy || health == Health::slow || health == Health::autofs_idle;
}

bool MountState::right() const {
  return is_good(health) && !has_faults(differences) && stacked == 0;
}

MountPoint point_of(const sys::MountEntry& mount) {
  const auto source = parse_source(mount.source);
  return {"", source.server, source.path, mount.target, {}, ""};
}

MountState classify(const MountPoint& point, bool wanted, const sys::MountTable& table, const sys::PathProbe* probe,
                    const std::vector<PendingMount>& pending, const std::string& address) {
  MountState state;
  state.point = point;
  state.wanted = wanted;
  const auto waiting =
      std::find_if(pending.begin(), pending.end(), [&](const PendingMount& one) { return one.target == point.target; });
  if (waiting != pending.end())
    state.pending = *waiting;
  const auto* entry = table.at(point.target);
  if (entry != nullptr)
    state.mount = *entry;
  if (entry == nullptr || entry->fs_type == "autofs") {
    if (state.pending)
      state.health = Health::backgrounding;
    else
      state.health = entry == nullptr ? Health::missing : Health::autofs_idle;
    return state;
  }
  state.stacked = stacked_below(table, *entry);
  if (!same_source(point, *entry, address)) {
    state.health = Health::wrong_source;
    state.detail = entry->fs_type + " " + entry->source;
    return state;
  }
  state.differences = compare_options(point.options, *entry);
  if (probe != nullptr) {
    state.probe = *probe;
    state.health = health_of(*probe);
    state.detail = probe->detail;
  } else {
    state.health = Health::failed;
    state.detail = "not looked at";
  }
  if (is_good(state.health) && lost_write_access(state.differences))
    state.health = Health::read_only;
  return state;
}

} // namespace sharefs::mounts
