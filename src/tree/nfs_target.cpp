#include "tree/nfs_target.hpp"

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

bool same_directory(const sys::Nfs3Attributes& one, const struct stat& other) {
  return S_ISDIR(one.st_mode) && one.st_mode == other.st_mode && one.st_ino == other.st_ino &&
         one.st_uid == other.st_uid && one.st_gid == other.st_gid && same_time(one, other) &&
         one.st_ctim.tv_sec == other.st_ctim.tv_sec && one.st_ctim.tv_nsec == other.st_ctim.tv_nsec;
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

std::optional<std::string> server_handle(std::string_view kernel_handle, ino_t inode) {
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
  const bool known = (std::uint64_t{words[0]} << 32U | words[1]) == inode && words[2] == S_IFDIR;
  if (!known || size == 0 || size > sys::k_max_handle || kernel_handle.size() != all)
    return std::nullopt;
  return std::string(kernel_handle.substr(k_before + sizeof size, size));
}

std::string NfsTarget::handle_of(int directory) {
  alignas(file_handle) std::array<char, sizeof(file_handle) + MAX_HANDLE_SZ> room{};
  auto* const found = reinterpret_cast<file_handle*>(room.data());
  found->handle_bytes = MAX_HANDLE_SZ;
  struct stat status{};
  int mount = 0;
  if (::fstat(directory, &status) != 0 || ::name_to_handle_at(directory, "", found, &mount, AT_EMPTY_PATH) != 0 ||
      found->handle_bytes > MAX_HANDLE_SZ)
    return "";
  return server_handle({reinterpret_cast<const char*>(found->f_handle), found->handle_bytes}, status.st_ino)
      .value_or("");
}

tl::expected<std::unique_ptr<NfsTarget>, std::string> NfsTarget::open(int directory, sys::ReservedSockets reserved,
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
  std::unique_ptr<NfsTarget> target;
  try {
    target = std::make_unique<NfsTarget>(std::make_unique<sys::RpcPipeline>(
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

tl::expected<void, std::string> NfsTarget::prove(int directory) {
  const auto handle = handle_of(directory);
  if (handle.empty())
    return tl::make_unexpected("this kernel does not give the server's handle of a directory");
  constexpr int k_looks = 4;
  bool same = false;
  m_round_trip = std::chrono::microseconds::max();
  for (int look = 0; look < k_looks; ++look) {
    const auto begin = sys::Clock::now();
    const auto reply = ask({{sys::k_nfs3_getattr, sys::nfs3_getattr(handle)}}, sys::read_nfs3_getattr).front();
    m_round_trip =
        std::min(m_round_trip, std::chrono::duration_cast<std::chrono::microseconds>(sys::Clock::now() - begin));
    if (!reply)
      return tl::make_unexpected(m_server + ": " + text_of(reply.error()));
    if (reply->status != sys::k_nfs3_ok)
      return tl::make_unexpected(
          fmt::format("{} refuses a look at the directory (NFS error {})", m_server, reply->status));
    struct stat status{};
    same = same || (stat_now(directory, "", status) && reply->attributes && same_directory(*reply->attributes, status));
  }
  return same ? tl::expected<void, std::string>() : tl::make_unexpected(m_server + " has another directory there");
}

/// JUKEBOX is repeated, with longer and longer pauses.
std::vector<sys::Answer<sys::Nfs3Reply>> NfsTarget::ask(const std::vector<sys::RpcPipeline::Call>& calls, Read read) {
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
      auto& reply = replies[open[i]] = answers[i].and_then(read);
      if (reply && reply->status == sys::k_nfs3_jukebox)
        later.push_back(open[i]);
    }
    open = std::move(later);
  }
  return replies;
}

void NfsTarget::make(std::string_view directory, std::span<File*> files) {
  std::vector<sys::RpcPipeline::Call> calls;
  for (const auto* file : files)
    calls.push_back({sys::k_nfs3_create, sys::nfs3_create(directory, file->name, file->mode)});
  const auto made = ask(calls, sys::read_nfs3_create);
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
    calls.push_back({sys::k_nfs3_write, sys::nfs3_write(file.handle, 0, file.content)});
    open.push_back(&file);
  }
  const auto written = ask(calls, sys::read_nfs3_write);
  for (std::size_t i = 0; i < open.size(); ++i)
    if (written[i] && written[i]->status == sys::k_nfs3_ok && written[i]->synced &&
        written[i]->count == open[i]->content.size())
      open[i]->done = true;
}

void NfsTarget::give_times(std::span<File*> files) {
  std::vector<sys::RpcPipeline::Call> calls;
  for (const auto* file : files)
    calls.push_back({sys::k_nfs3_setattr, sys::nfs3_set_times(file->handle, file->accessed, file->modified)});
  const auto given = ask(calls, sys::read_nfs3_setattr);
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i]->done = given[i] && given[i]->status == sys::k_nfs3_ok && given[i]->attributes;
    if (files[i]->done)
      files[i]->attributes = *given[i]->attributes;
  }
}

void NfsTarget::read_again(std::span<File*> files) {
  std::vector<sys::RpcPipeline::Call> calls;
  for (const auto* file : files)
    calls.push_back({sys::k_nfs3_read, sys::nfs3_read(file->handle, 0, file->size)});
  auto found = ask(calls, sys::read_nfs3_read);
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i]->read = found[i] && found[i]->status == sys::k_nfs3_ok && found[i]->content.size() == files[i]->size;
    if (files[i]->read)
      files[i]->content = std::move(found[i]->content);
  }
}

} // namespace sharefs::tree
