#include "mounts/state.hpp"

#include "base/text.hpp"
#include "sys/net/addresses.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

bool lost_write_access(const std::vector<Difference>& differences) {
  return std::ranges::any_of(differences,
                             [](const Difference& one) { return one.key == "access" && one.asked == "rw"; });
}

bool is_soft(const sys::MountEntry& mount) {
  const auto shown = shown_settings(mount);
  const auto recovery = value_of(shown, "recovery");
  return !recovery.empty() && recovery != "hard";
}

Health health_of_error(int error_number, bool soft) {
  switch (error_number) {
  case ETIMEDOUT: // no answer within our deadline, or from a `softerr` mount
    return Health::hung;
  case ESTALE:
    return Health::stale;
  case EACCES:
  case EPERM:
    return Health::denied;
  case EROFS:
    return Health::read_only;
  case ENOSPC:
  case EDQUOT:
    return Health::full;
  case EAGAIN:
  case EMFILE:
  case ENFILE:
  case ENOMEM:
    return Health::unknown;
  case EIO:
    return soft ? Health::hung : Health::failed;
  default:
    return Health::failed;
  }
}

/// True if no inode is left, so that no file can be made even with space left. File systems without a fixed number of
/// inodes report 0 of 0.
bool lacks_inodes(const sys::Entry& answer) {
  return answer.space && answer.space->files > 0 && answer.space->free_files == 0;
}

Health health_of_answer(const sys::Entry& answer, bool soft) {
  if (answer.error_number != 0)
    return health_of_error(answer.error_number, soft);
  if (answer.space && ((answer.space->size_bytes > 0 && answer.space->free_bytes == 0) || lacks_inodes(answer)))
    return Health::full;
  return answer.space && answer.space->latency > k_slow_after ? Health::slow : Health::healthy;
}

/// True also where one has the zone by its name and the other by its number, as the kernel does: fe80::1%eth0,
/// fe80::1%2.
bool is_same_address(std::string_view one, std::string_view other) {
  if (one == other)
    return true;
  const auto first = sys::read_address(std::string(one)), second = sys::read_address(std::string(other));
  return first && second && first->text == second->text;
}

/// Returns the addresses of the server's name if the mount uses none of them; else "".
std::string find_new_address(const sys::MountEntry& mount, const MountPoint& point, const sys::NfsProbe* server) {
  if (server == nullptr || !is_same_host(parse_source(mount.source).server, point.server))
    return {};
  const auto shown = shown_settings(mount);
  const auto used = value_of(shown, "addr");
  const auto& resolved = server->result_of(sys::ProbeStage::resolve);
  if (used.empty() || resolved.outcome != sys::StageOutcome::ok)
    return {};
  const auto addresses = split(resolved.detail, ',');
  const bool is_known =
      std::ranges::any_of(addresses, [&](const std::string& address) { return is_same_address(trim(address), used); });
  return is_known ? "" : resolved.detail;
}

/// Returns the health of a mount whose server is this host: the directory itself, or a bind mount of it at the target.
Health health_here(const MountPoint& point, const sys::MountTable& table, const sys::Entry* answer) {
  const auto* entry = table.at(point.target);
  if (entry != nullptr && sys::is_nfs(*entry))
    return Health::looped;
  if (point.is_in_place())
    return entry != nullptr || (answer != nullptr && answer->kind == sys::EntryKind::directory) ? Health::here
                                                                                                : Health::missing;
  if (entry == nullptr || entry->fs_type == "autofs")
    return Health::missing;
  return table.is_bind(point.target, point.path) ? Health::here : Health::wrong_source;
}

} // namespace

const char* to_string(Health health) {
  constexpr std::array k_names{"healthy",     "slow",      "full",    "hung",         "stale",
                               "denied",      "read-only", "missing", "wrong source", "backgrounding",
                               "autofs-idle", "unknown",   "failed",  "here",         "looped"};
  return k_names.at(static_cast<std::size_t>(health));
}

bool is_good(Health health) {
  return health == Health::healthy || health == Health::slow || health == Health::full ||
         health == Health::autofs_idle || health == Health::here;
}

bool MountState::right() const {
  return is_good(health) && health != Health::full && !has_faults(differences) && stacked == 0 && taken_over == 0;
}

const sys::Space* MountState::space() const {
  return answer && answer->space && answer->space->size_bytes > 0 ? &*answer->space : nullptr;
}

void set_answer(MountState& state, sys::Entry given) {
  const auto& answer = state.answer.emplace(std::move(given));
  const bool soft = answer.error_number != 0 && state.mount && is_soft(*state.mount);
  state.health = health_of_answer(answer, soft);
  state.detail = answer.error_number == 0 || !answer.detail.empty() ? answer.detail : errno_text(answer.error_number);
  if (soft && state.health == Health::hung)
    state.detail += "; a soft mount whose server is away";
  if (state.health == Health::full && state.detail.empty() && answer.space->free_bytes > 0 && lacks_inodes(answer))
    state.detail = fmt::format("all of its {} inodes are used", answer.space->files);
  if (is_good(state.health) && lost_write_access(state.differences))
    state.health = Health::read_only;
}

MountPoint point_without_options(const sys::MountEntry& mount) {
  auto source = parse_source(mount.source);
  MountPoint point;
  point.server = std::move(source.server);
  point.path = std::move(source.path);
  point.target = mount.target;
  if (mount.super_options.find(",port=") != std::string::npos) { // parsing all options of a thousand mounts takes time
    const auto shown = parse_options({mount.super_options});
    if (!value_of(shown, "proto").starts_with("rdma"))
      point.options = parse_options({fmt::format("port={}", value_of(shown, "port"))});
  }
  return point;
}

MountPoint point_of(const sys::MountEntry& mount) {
  auto point = point_without_options(mount);
  point.options = parse_options({remount_options(mount)});
  return point;
}

MountState classify(MountPoint its_point, bool wanted, const sys::MountTable& table, std::optional<sys::Entry> answer,
                    const std::vector<PendingMount>& pending, const sys::NfsProbe* server) {
  MountState state;
  const auto& point = state.point = std::move(its_point);
  state.wanted = wanted;
  const auto waiting = std::ranges::find(pending, point.target, &PendingMount::target);
  if (waiting != pending.end())
    state.pending = *waiting;
  const auto* entry = table.at(point.target);
  if (entry != nullptr)
    state.mount = *entry;
  else
    state.answer = answer;
  if (wanted && point.here) {
    state.health = health_here(point, table, answer ? &*answer : nullptr);
    if (state.health == Health::wrong_source)
      state.detail = entry->fs_type + " " + entry->source;
    return state;
  }
  if (entry == nullptr || entry->fs_type == "autofs") {
    if (state.pending)
      state.health = Health::backgrounding;
    else
      state.health = entry == nullptr ? Health::missing : Health::autofs_idle;
    return state;
  }
  if (!same_source(point, *entry, server == nullptr ? "" : server->address)) {
    state.health = Health::wrong_source;
    state.detail = entry->fs_type + " " + entry->source;
    return state;
  }
  if (wanted)
    state.differences = compare_options(point.options, *entry);
  state.moved_to = find_new_address(*entry, point, server);
  state.health = Health::unknown;
  if (answer)
    set_answer(state, std::move(*answer));
  return state;
}

} // namespace sharefs::mounts
