#include "tree/nfs_files.hpp"

#include "base/text.hpp"
#include "sys/mounts/mount_watch.hpp"
#include "tree/attributes.hpp"
#include "tree/here.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fmt/format.h>
#include <thread>

namespace sharefs::tree {

namespace {

using namespace std::chrono_literals;

constexpr auto k_connect_time = 3s;
constexpr auto k_patience = 20s; ///< without any reply; then the mount is used, which waits as it is mounted
constexpr int k_jukebox_tries = 9;
constexpr auto k_jukebox_pause = 50ms, k_longest_pause = 5000ms;

tl::expected<NfsRoute, std::string> route_of(int directory) {
  struct statx status{};
  if (::statx(directory, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_MNT_ID, &status) != 0 ||
      (status.stx_mask & STATX_MNT_ID) == 0)
    return tl::make_unexpected("this kernel does not say on which mount it lies");
  const auto table = sys::MountWatch().current();
  if (table)
    for (const auto& mount : table->entries())
      if (static_cast<std::uint64_t>(mount.id) == status.stx_mnt_id)
        return nfs_route(mount.fs_type, mount.super_options);
  return tl::make_unexpected("the mount that it lies on is not to be found");
}

/// A server does not know our number of its file system.
bool same(sys::Nfs3Attributes one, const struct stat& other) {
  one.st_dev = other.st_dev;
  return same_state(one, other);
}

/// name_to_handle_at(2): the handle, and the number of the mount; "" if there is none.
std::pair<std::string, int> kernel_handle(int directory, const char* name) {
  alignas(file_handle) std::array<char, sizeof(file_handle) + MAX_HANDLE_SZ> room{};
  auto* const found = reinterpret_cast<file_handle*>(room.data());
  found->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(directory, name, found, &mount, AT_EMPTY_PATH) != 0 || found->handle_bytes > MAX_HANDLE_SZ)
    return {"", -1};
  return {std::string(reinterpret_cast<const char*>(found->f_handle), found->handle_bytes), mount};
}

std::string text_of(const sys::Failure& failure) {
  switch (failure.fault) {
  case sys::Fault::connection:
    return "no connection (" + errno_text(failure.error_number) + ")";
  case sys::Fault::timeout:
    return "no answer";
  case sys::Fault::unsupported:
    return "it does not offer NFS version 3";
  case sys::Fault::refused:
    return "it refuses this user's calls";
  case sys::Fault::unreadable:
    return "its reply cannot be read";
  default:
    return "the connection has ended";
  }
}

} // namespace

tl::expected<NfsRoute, std::string> nfs_route(const std::string& fs_type, const std::string& super_options) {
  const auto no = [](std::string why) { return tl::make_unexpected(std::move(why)); };
  if (fs_type != "nfs" && fs_type != "nfs4")
    return no("it is on " + fs_type + ", not on NFS");
  std::map<std::string, std::string, std::less<>> options;
  for (const auto& option : split(super_options, ','))
    options.emplace(option.substr(0, option.find('=')),
                    option.substr(std::min(option.find('='), option.size() - 1) + 1));
  const auto is = [&options](const char* name, std::initializer_list<std::string_view> values) {
    const auto found = options.find(name);
    return std::ranges::find(values, found == options.end() ? std::string_view() : std::string_view(found->second)) !=
           values.end();
  };
  if (!is("vers", {"3", "4", "4.0", "4.1", "4.2"})) // a server that offers 3, too, has the same handles for it
    return no("it is mounted with NFS version " + options["vers"]);
  if (!is("proto", {"tcp", "tcp6"}))
    return no("it is mounted over " + options["proto"] + ", not TCP");
  if (!is("sec", {"sys"}) || !is("xprtsec", {"", "none"}))
    return no("it is mounted with other security than sec=sys");
  const auto number = [&options](const char* name) {
    const auto& text = options[name];
    std::uint32_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  constexpr std::uint16_t k_nfs_port = 2049;
  const auto port = static_cast<std::uint16_t>(number("port"));
  NfsRoute route{options["addr"], port == 0 ? k_nfs_port : port, std::min(number("wsize"), number("rsize"))};
  if (route.address.empty() || route.size == 0)
    return no("the kernel does not say which server it is mounted from");
  return route;
}

std::optional<std::string> server_handle(std::string_view kernel_handle, const struct stat& status) {
  // Words of this host: the inode's number (high, low), its type; then the size of the server's handle (16 bits) and
  // that handle, padded.
  constexpr std::size_t k_before = 3 * sizeof(std::uint32_t);
  std::array<std::uint32_t, 3> words{};
  std::uint16_t size = 0;
  if (kernel_handle.size() < k_before + sizeof size)
    return std::nullopt;
  std::memcpy(words.data(), kernel_handle.data(), k_before);
  std::memcpy(&size, kernel_handle.data() + k_before, sizeof size);
  const std::size_t all = k_before + (sizeof size + size + 3U) / 4U * 4U;
  const bool known =
      (std::uint64_t{words[0]} << 32U | words[1]) == status.st_ino && words[2] == (status.st_mode & S_IFMT);
  if (!known || size == 0 || size > sys::k_max_handle || kernel_handle.size() != all)
    return std::nullopt;
  return std::string(kernel_handle.substr(k_before + sizeof size, size));
}

std::string NfsFiles::handle_of(int directory, const char* name, const struct stat& status) const {
  const auto [handle, mount] = kernel_handle(directory, name);
  return mount == m_mount ? server_handle(handle, status).value_or("") : "";
}

tl::expected<std::unique_ptr<NfsFiles>, std::string> NfsFiles::open(int directory, sys::ReservedSockets reserved,
                                                                    const sys::Pulse& pulse) {
  const auto route = route_of(directory);
  if (!route)
    return tl::make_unexpected(route.error());
  const bool is_reserved = reserved.v4 || reserved.v6;
  const auto addresses = sys::resolve_host(route->address);
  auto connection =
      addresses ? sys::connect_tcp(*addresses, route->port, sys::deadline_in(k_connect_time), std::move(reserved))
                : sys::Answer<sys::Connection>(sys::failure(sys::Fault::connection, EHOSTUNREACH));
  if (!connection)
    return tl::make_unexpected(fmt::format("{} port {}: {}", route->address, route->port, text_of(connection.error())));
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  groups.resize(static_cast<std::size_t>(std::max(0, ::getgroups(static_cast<int>(groups.size()), groups.data()))));
  std::unique_ptr<NfsFiles> target;
  try {
    target = std::make_unique<NfsFiles>(std::make_unique<sys::RpcPipeline>(
        std::move(connection->fd), sys::own_credential(groups), k_patience, [&pulse] { pulse.add(k_steps); }));
  } catch (const std::system_error&) {
    return tl::make_unexpected("no more threads for this user");
  }
  target->m_server = route->address;
  target->m_most = std::min(route->size, sys::k_nfs3_most_bytes); // larger files the kernel sends as fast
  if (auto proved = target->prove(directory); !proved)
    return tl::make_unexpected(
        proved.error() +
        (is_reserved ? ""
                     : "; a `secure` export answers only to ports below 1024, which sharefs has when root starts it"));
  return target;
}

tl::expected<void, std::string> NfsFiles::prove(int directory) {
  struct stat status{};
  m_mount = kernel_handle(directory, "").second;
  const auto handle = ::fstat(directory, &status) == 0 ? handle_of(directory, "", status) : "";
  if (handle.empty())
    return tl::make_unexpected("this kernel does not give the server's handle of a directory");
  constexpr int k_looks = 4;
  bool proved = false;
  m_round_trip = std::chrono::microseconds::max();
  for (int look = 0; look < k_looks; ++look) {
    const auto begin = sys::Clock::now();
    const auto reply = ask({{{sys::k_nfs3_getattr, sys::nfs3_getattr(handle)}, sys::read_nfs3_getattr}}).front();
    m_round_trip =
        std::min(m_round_trip, std::chrono::duration_cast<std::chrono::microseconds>(sys::Clock::now() - begin));
    if (!reply)
      return tl::make_unexpected(m_server + ": " + text_of(reply.error()));
    if (reply->status != sys::k_nfs3_ok)
      return tl::make_unexpected(
          fmt::format("{} refuses a look at the directory (NFS error {})", m_server, reply->status));
    proved = proved || (stat_now(directory, "", status) && reply->attributes && same(*reply->attributes, status) &&
                        reply->attributes->st_uid == status.st_uid && reply->attributes->st_gid == status.st_gid);
  }
  return proved ? tl::expected<void, std::string>() : tl::make_unexpected(m_server + " has another directory there");
}

/// JUKEBOX is repeated, with longer and longer pauses.
std::vector<sys::Answer<sys::Nfs3Reply>> NfsFiles::ask(const std::vector<Call>& calls) {
  std::vector<sys::Answer<sys::Nfs3Reply>> replies(calls.size(), sys::failure(sys::Fault::not_asked));
  std::vector<std::size_t> open(calls.size());
  for (std::size_t i = 0; i < open.size(); ++i)
    open[i] = i;
  std::chrono::milliseconds pause = k_jukebox_pause;
  for (int round = 0; !open.empty() && round < k_jukebox_tries; ++round) {
    if (round > 0) {
      std::this_thread::sleep_for(pause);
      pause = std::min<std::chrono::milliseconds>(2 * pause, k_longest_pause);
    }
    std::vector<sys::RpcPipeline::Call> now;
    for (const auto i : open)
      now.push_back(calls[i]);
    const auto answers = m_pipeline->call_all(now);
    std::vector<std::size_t> later;
    for (std::size_t i = 0; i < open.size(); ++i) {
      auto& reply = replies[open[i]] = answers[i].and_then(calls[open[i]].read);
      if (reply && reply->status == sys::k_nfs3_jukebox)
        later.push_back(open[i]);
    }
    open = std::move(later);
  }
  return replies;
}

void NfsFiles::make(std::string_view directory, std::span<File*> files) {
  std::vector<Call> calls;
  for (const auto* file : files)
    calls.push_back({{sys::k_nfs3_create, sys::nfs3_create(directory, file->name, file->mode)}, sys::read_nfs3_create});
  const auto made = ask(calls);
  calls.clear();
  std::vector<File*> open;
  for (std::size_t i = 0; i < files.size(); ++i) {
    File& file = *files[i];
    file.made = !made[i] || made[i]->status == sys::k_nfs3_ok; // without a reply it may be there
    if (!made[i] || made[i]->status != sys::k_nfs3_ok || made[i]->handle.empty() || !made[i]->attributes)
      continue;
    file.handle = made[i]->handle;
    file.size = static_cast<std::uint32_t>(file.content.size());
    file.attributes = *made[i]->attributes;
    if (file.content.empty()) {
      file.done = true;
      continue;
    }
    calls.push_back({{sys::k_nfs3_write, sys::nfs3_write(file.handle, 0, file.content)}, sys::read_nfs3_write});
    open.push_back(&file);
  }
  const auto written = ask(calls);
  for (std::size_t i = 0; i < open.size(); ++i)
    if (written[i] && written[i]->status == sys::k_nfs3_ok && written[i]->synced &&
        written[i]->count == open[i]->content.size())
      open[i]->done = true;
}

void NfsFiles::give_times(std::span<File*> files) {
  std::vector<Call> calls;
  for (const auto* file : files)
    calls.push_back({{sys::k_nfs3_setattr, sys::nfs3_set_times(file->handle, file->accessed, file->modified)},
                     sys::read_nfs3_setattr});
  const auto given = ask(calls);
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i]->done = given[i] && given[i]->status == sys::k_nfs3_ok && given[i]->attributes;
    if (files[i]->done)
      files[i]->attributes = *given[i]->attributes;
  }
}

void NfsFiles::read(std::span<File*> files, bool acls) {
  std::vector<Call> calls;
  for (const auto* file : files) // of an empty file one byte, which shows that it has none
    calls.push_back(
        {{sys::k_nfs3_read, sys::nfs3_read(file->handle, 0, std::max(file->size, 1U))}, sys::read_nfs3_read});
  for (const auto* file : files.first(acls ? files.size() : 0))
    calls.push_back({{sys::k_nfs3_getacl, sys::nfs3_getacl(file->handle)}, sys::read_nfs3_getacl});
  auto found = ask(calls);
  for (std::size_t i = 0; i < files.size(); ++i) {
    File& file = *files[i];
    const auto is_same = [&](const sys::Answer<sys::Nfs3Reply>& reply) {
      return reply && reply->status == sys::k_nfs3_ok && reply->attributes && same(*reply->attributes, file.attributes);
    };
    file.read = is_same(found[i]) && found[i]->content.size() == file.size &&
                (!acls || (is_same(found[files.size() + i]) && !found[files.size() + i]->has_acl));
    if (file.read)
      file.content = std::move(found[i]->content);
  }
}

} // namespace sharefs::tree
