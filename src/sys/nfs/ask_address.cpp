// Asks one address of a server by libnfs, in the child, and writes the report. A hostile reply may make libnfs do
// anything, so the parent's decoder of the report, which is here, too, checks each field.
#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/net/connect.hpp"
#include "sys/nfs/server_answers.hpp"
#include "sys/process/sandbox.hpp"
#include "sys/process/wire.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <netinet/in.h>
#include <new>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <type_traits>

// The order matters: libnfs's headers use types of each other without including them.
#include <nfsc/libnfs-zdr.h>

#include <nfsc/libnfs.h>

#include <nfsc/libnfs-raw.h>

#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs4.h>
#include <nfsc/libnfs-raw-portmap.h>

#ifdef SHAREFS_LIBNFS_HAS_TASKS // libnfs 6 and later; cmake/Dependencies.cmake sets it
#define LIBNFS_CALL(name) rpc_##name##_task
#else
#define LIBNFS_CALL(name) rpc_##name##_async
#endif

namespace sharefs::sys {

template <FieldsOf<ServerAnswer> E> auto fields(E& e) {
  return named("fault", e.fault, "error_number", e.error_number, "round_trip", e.round_trip);
}
template <FieldsOf<PathAnswers> E> auto fields(E& e) {
  return named("by_mountd", e.by_mountd, "by_nfs4", e.by_nfs4);
}
template <FieldsOf<AddressAnswers> E> auto fields(E& e) {
  return named("stages", e.stages, "mountd_port", e.mountd_port, "exports", e.exports, "access", e.access, "v4_minor",
               e.v4_minor);
}

namespace {

bool is_name(const std::string& text) {
  return text.size() <= k_max_name && std::ranges::none_of(text, is_control);
}

bool is_sound(const AddressAnswers& answers) {
  std::size_t entries = answers.exports.size();
  const auto is_sound_answer = [](const ServerAnswer& one) {
    return one.fault <= Fault::status && one.round_trip.count() >= 0 && one.round_trip <= std::chrono::hours(24);
  };
  const auto is_sound_path = [&](const PathAnswers& one) {
    return is_sound_answer(one.by_mountd) && is_sound_answer(one.by_nfs4);
  };
  const auto is_listing = [&entries](const ExportListing& one) {
    entries += one.clients.size();
    return is_name(one.directory) && std::ranges::all_of(one.clients, is_name);
  };
  return answers.stages.size() == k_stage_count && std::ranges::all_of(answers.stages, is_sound_answer) &&
         std::ranges::all_of(answers.exports, is_listing) && entries <= k_max_entries &&
         std::ranges::all_of(answers.access, is_sound_path) && answers.v4_minor <= k_newest_minor;
}

constexpr std::uint32_t k_program_nfs = 100003, k_program_mount = 100005;
constexpr std::uint32_t k_auth_none = 0, k_auth_sys = 1, k_max_flavors = 64;
constexpr int k_minor_version_mismatch = 10021; ///< NFS4ERR_MINOR_VERS_MISMATCH of RFC 7530

/// True if libnfs has queued a call: it returns 0, or since version 6 an object.
template <class Queued> bool is_queued(Queued queued) {
  if constexpr (std::is_pointer_v<Queued>)
    return queued != nullptr;
  else
    return queued == 0;
}

/// Replaces control characters in a name, which could move a terminal's cursor.
std::string printable(const char* name) {
  std::string text(name == nullptr ? "" : name);
  std::ranges::replace_if(text, is_control, '?');
  return text;
}

/// Reads an error message of libnfs, which has a message only if the server has refused a call.
ServerAnswer parse_refusal(std::string_view words) {
  const auto has = [words](std::string_view part) { return words.find(part) != std::string_view::npos; };
  if (has("not available") || has("version mismatch"))
    return {Fault::unsupported};
  return {has("not accepted") || has("Garbage arguments") || has("System Error") ? Fault::refused : Fault::unreadable};
}

/// Returns the port in a universal address (RFC 1833), which is the last two numbers of "::.8.1"; 0 if it is not one.
std::uint16_t port_in(std::string_view universal_address) {
  const auto numbers = split(universal_address, '.');
  if (numbers.size() < 3)
    return 0;
  const auto high = parse_number<std::uint8_t>(numbers.end()[-2]), low = parse_number<std::uint8_t>(numbers.back());
  return high && low ? static_cast<std::uint16_t>(*high << 8U | *low) : std::uint16_t{0};
}

/// Converts a status of NFS or mountd: both use the same error numbers, and 0 for no error.
template <class Status> ServerAnswer convert_status(Status status) {
  return {status == 0 ? Fault::none : Fault::status, static_cast<int>(status)};
}

/// True if the connection is closed.
bool has_ended(const pollfd& socket) {
  char byte = 0;
  const ssize_t count = ::recv(socket.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

/// Converts a status of NFS 4 to the answer that MNT would have given.
ServerAnswer convert_to_mount(const ServerAnswer& answer) {
  constexpr int wrong_security = 10016, moved = 10019; // RFC 7530
  if (answer == ServerAnswer{Fault::status, wrong_security})
    return {Fault::only_kerberos};
  return answer == ServerAnswer{Fault::status, moved} ? ServerAnswer{Fault::moved} : answer;
}

/// After a fault other than `unsupported`, `refused` and `status` the connection cannot be used any more.
class AddressProbe {
 public:
  AddressProbe(const NfsProbeRequest& request, const Address& address, int fd)
      : m_request(request), m_address(address), m_fd(fd), m_deadline(deadline_in(request.timeout)),
        m_context(nullptr, ::nfs_destroy_context) {}

  /// Asks NFS itself first, because a firewall in front of the portmapper must not use up the time for NFS.
  void run() {
    // A port below 1024 can be bound only before privileges are dropped.
    if (m_uid == 0) {
      m_reserved_for_nfs = reserve_socket(m_address.storage.ss_family);
      m_reserved_for_mountd = reserve_socket(m_address.storage.ss_family);
    }
    const int dropped = drop_privileges();
    if (const int error = dropped != 0 ? dropped : restrict_to_network(); error != 0)
      return finish(ProbeStage::connect, {Fault::not_asked, error});
    begin();
    if (!connect(ProbeStage::connect, m_request.ports.nfs))
      return;
    finish(ProbeStage::connect);
    begin(40);
    finish(ProbeStage::nfs3, null(k_program_nfs, 3));
    ask_nfs4();
    ask_portmapper();
    if (m_answers.mountd_port != 0)
      ask_mountd();
  }

 private:
  // ---- the stages ----

  /// Begins a stage. It gets a part of the remaining time, so that a stage without an answer leaves time for the
  /// others.
  void begin(int percent = 100) {
    m_begin = Clock::now();
    m_until = m_deadline <= m_begin ? m_deadline : m_begin + (m_deadline - m_begin) * percent / 100;
  }

  void finish(ProbeStage stage, const ServerAnswer& answer = {}) {
    m_answers[stage] = answer;
    m_answers[stage].round_trip = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - m_begin);
    write_all(m_fd, encode(m_answers));
  }

  /// Uses a new connection, because after a timeout the old one cannot be used. Version 4 is asked for its root, which
  /// needs a running mountd, unlike NULL, which the kernel answers itself.
  void ask_nfs4() {
    begin(40);
    if (!connect(ProbeStage::nfs4, m_request.ports.nfs, std::move(m_reserved_for_nfs)))
      return;
    const ServerAnswer root = look_up("/");
    const auto paths = m_request.want_access ? m_request.paths : std::vector<std::string>();
    if (root.fault == Fault::refused) {
      // A server that requires Kerberos refuses everything but NULL, and so does one that exports nothing to this
      // address.
      m_answers.access.assign(paths.size(), {{Fault::timeout}, root});
      return finish(ProbeStage::nfs4, null(k_program_nfs, 4));
    }
    finish(ProbeStage::nfs4, is_answer(root) ? ServerAnswer() : root);
    const ServerAnswer mismatch{Fault::status, k_minor_version_mismatch};
    auto tried = root;
    for (auto minor = k_newest_minor; is_answer(tried) && minor > 0; --minor) {
      tried = look_up("/", minor);
      if (is_answer(tried))
        m_answers.v4_minor = tried == mismatch ? minor - 1 : minor;
      if (tried != mismatch)
        break;
    }
    tried = root == mismatch ? ServerAnswer{Fault::unsupported} : root; // other minor versions would need a session
    for (auto path = paths.begin(); is_answer(tried) && path != paths.end(); ++path) {
      tried = look_up(*path);
      m_answers.access.push_back({{Fault::timeout}, convert_to_mount(tried)});
    }
    write_all(m_fd, encode(m_answers));
  }

  void ask_portmapper() {
    m_answers.mountd_port = m_request.ports.mountd;
    begin(50);
    if (m_answers.mountd_port != 0)
      return finish(ProbeStage::portmapper);
    if (!connect(ProbeStage::portmapper, m_request.ports.portmapper))
      return;
    const bool is_ipv6 = m_address.storage.ss_family == AF_INET6;
    ServerAnswer answer = is_ipv6 ? find_mountd_of_ipv6() : find_mountd();
    if (is_ipv6 && answer.fault == Fault::unsupported)
      answer = find_mountd();
    finish(ProbeStage::portmapper, answer);
    begin();
    if (answer.fault == Fault::none && m_answers.mountd_port == 0)
      finish(ProbeStage::mountd, {Fault::unregistered});
  }

  void ask_mountd() {
    begin(70);
    if (!connect(ProbeStage::mountd, m_answers.mountd_port, std::move(m_reserved_for_mountd)))
      return;
    finish(ProbeStage::mountd, null(k_program_mount, 3));
    if (m_answers[ProbeStage::mountd].fault != Fault::none)
      return;
    begin();
    const ServerAnswer listed = list_exports();
    const bool nothing = listed.fault == Fault::none && m_answers.exports.empty();
    finish(ProbeStage::exports, nothing ? ServerAnswer{Fault::nothing} : listed);
    if (listed.fault != Fault::none)
      return;
    begin();
    const auto paths = access_paths(m_request, m_answers.exports);
    m_answers.access.resize(paths.size());
    ServerAnswer answer;
    for (std::size_t i = 0; i < paths.size() && is_answer(answer); ++i)
      answer = m_answers.access[i].by_mountd = mount(paths[i]);
    if (!paths.empty())
      finish(ProbeStage::access);
  }

  // ---- the calls ----

  /// Connects to a port; false if this fails, and then the stage has failed. The calls over the connection carry the
  /// ids of the user who would mount (AUTH_SYS), without further groups.
  bool connect(ProbeStage stage, std::uint16_t port, Fd reserved = {}) {
    auto connected = connect_to({m_address}, port, m_until, std::move(reserved));
    if (!connected) {
      finish(stage, {Fault::connection, connected.error()});
      return false;
    }
    m_context.reset(::nfs_init_context());
    if (!m_context)
      throw std::bad_alloc();
    ::nfs_set_autoreconnect(m_context.get(), 0);
    m_rpc = ::nfs_get_rpc_context(m_context.get());
    ::rpc_set_auth(m_rpc, ::libnfs_authunix_create("sharefs", m_uid, m_gid, 0, nullptr));
    ::rpc_set_fd(m_rpc, connected->release());
    ::rpc_service(m_rpc, POLLOUT); // libnfs checks here whether the connection is established
    return true;
  }

  using Read = std::function<ServerAnswer(const void* result)>; ///< libnfs frees the result after this call

  static void on_reply(rpc_context*, int status, void* result, void* self) {
    auto& probe = *static_cast<AddressProbe*>(self);
    probe.m_finished =
        status == RPC_STATUS_SUCCESS
            ? probe.m_read ? probe.m_read(result) : ServerAnswer()
            : parse_refusal(status == RPC_STATUS_ERROR && result != nullptr ? static_cast<const char*>(result) : "");
  }

  /// Queues a call and waits for its reply.
  template <class Queue> ServerAnswer call(const Queue& queue, Read read = nullptr) {
    m_read = std::move(read);
    m_finished.reset();
    if (!is_queued(queue(on_reply, this)))
      return {Fault::not_asked, ENOMEM};
    while (!m_finished) {
      pollfd socket{::rpc_get_fd(m_rpc), static_cast<short>(::rpc_which_events(m_rpc)), 0};
      if (Clock::now() >= m_until || ::poll(&socket, 1, poll_time(m_until)) == 0)
        return {Fault::timeout};
      if (has_ended(socket))
        return {Fault::closed};
      if (::rpc_service(m_rpc, socket.revents & (POLLIN | POLLOUT)) != 0)
        return {Fault::unreadable};
    }
    return *m_finished;
  }

  /// Calls the NULL procedure, which does nothing.
  ServerAnswer null(std::uint32_t program, std::uint32_t version) {
    return call([&](rpc_cb reply, void* call) {
      return LIBNFS_CALL(null)(m_rpc, static_cast<int>(program), static_cast<int>(version), reply, call);
    });
  }

  /// Looks up a path by NFS 4, starting at the root, and asks for the type of its last name: only then a server checks
  /// this host's port, and only with an attribute it reports a referral. There is no session, so newer minor versions
  /// than 0 refuse every look-up; any answer but k_minor_version_mismatch shows that the server offers the minor
  /// version.
  ServerAnswer look_up(const std::string& path, std::uint32_t minor = 0) {
    auto names = split(normalize_path(path), '/');
    std::erase(names, "");
    std::vector<nfs_argop4> steps(1 + names.size() + 1);
    steps.front().argop = OP_PUTROOTFH;
    std::uint32_t type = 1U << 1U; // FATTR4_TYPE
    steps.back().argop = OP_GETATTR;
    steps.back().nfs_argop4_u.opgetattr.attr_request = {1, &type};
    for (std::size_t i = 0; i < names.size(); ++i) {
      component4& name = steps[i + 1].nfs_argop4_u.oplookup.objname;
      steps[i + 1].argop = OP_LOOKUP;
      name.utf8string_len = static_cast<u_int>(names[i].size());
      name.utf8string_val = names[i].data();
    }
    COMPOUND4args arguments{};
    arguments.minorversion = minor;
    arguments.argarray.argarray_len = static_cast<u_int>(steps.size());
    arguments.argarray.argarray_val = steps.data();
    return call([&](rpc_cb reply, void* call) { return LIBNFS_CALL(nfs4_compound)(m_rpc, reply, &arguments, call); },
                [](const void* result) { return convert_status(static_cast<const COMPOUND4res*>(result)->status); });
  }

  /// Asks the portmapper for the port of mountd's version 3; 0: it does not know mountd.
  ServerAnswer find_mountd() {
    return call(
        [&](rpc_cb reply, void* call) {
          return LIBNFS_CALL(pmap2_getport)(m_rpc, k_program_mount, 3, IPPROTO_TCP, reply, call);
        },
        [this](const void* result) {
          m_answers.mountd_port = static_cast<std::uint16_t>(*static_cast<const std::uint32_t*>(result));
          return ServerAnswer();
        });
  }

  /// Asks by version 3 of the portmapper's protocol, because version 2 has only ports of IPv4.
  ServerAnswer find_mountd_of_ipv6() {
    std::string network = "tcp6", nothing;
    pmap3_mapping mapping{k_program_mount, 3, network.data(), nothing.data(), nothing.data()};
    return call([&](rpc_cb reply, void* call) { return LIBNFS_CALL(pmap3_getaddr)(m_rpc, &mapping, reply, call); },
                [this](const void* result) {
                  const char* const address = static_cast<const pmap3_string_result*>(result)->addr;
                  m_answers.mountd_port = address == nullptr ? std::uint16_t{0} : port_in(address);
                  return ServerAnswer();
                });
  }

  ServerAnswer list_exports() {
    const auto read = [this](const void* result) {
      for (const auto* one = *static_cast<const exportnode* const*>(result); one != nullptr; one = one->ex_next) {
        auto& listing = m_answers.exports.emplace_back(printable(one->ex_dir));
        for (const groupnode* group = one->ex_groups; group != nullptr; group = group->gr_next)
          listing.clients.push_back(printable(group->gr_name));
      }
      if (is_sound(m_answers))
        return ServerAnswer();
      m_answers.exports.clear(); // the list is larger than the parent accepts
      return ServerAnswer{Fault::unreadable};
    };
    return call([&](rpc_cb reply, void* call) { return LIBNFS_CALL(mount3_export)(m_rpc, reply, call); }, read);
  }

  /// Calls MNT for a path, then UMNT, which removes us from the server's list of mounts again.
  ServerAnswer mount(std::string path) {
    const auto read = [](const void* result) -> ServerAnswer {
      const auto& answer = *static_cast<const mountres3*>(result);
      if (answer.fhs_status != MNT3_OK)
        return convert_status(answer.fhs_status);
      const auto& [handle, flavors] = answer.mountres3_u.mountinfo;
      if (handle.fhandle3_len > FHSIZE3 || flavors.auth_flavors_len > k_max_flavors)
        return {Fault::unreadable};
      const auto* const begin = flavors.auth_flavors_val;
      const bool has_others = std::any_of(begin, begin + flavors.auth_flavors_len, [](auto flavor) {
        return static_cast<std::uint32_t>(flavor) == k_auth_sys || static_cast<std::uint32_t>(flavor) == k_auth_none;
      });
      return {flavors.auth_flavors_len > 0 && !has_others ? Fault::only_kerberos : Fault::none};
    };
    const ServerAnswer mounted =
        call([&](rpc_cb reply, void* call) { return LIBNFS_CALL(mount3_mnt)(m_rpc, reply, path.data(), call); }, read);
    if (mounted.fault == Fault::none || mounted.fault == Fault::only_kerberos)
      call([&](rpc_cb reply, void* call) { return LIBNFS_CALL(mount3_umnt)(m_rpc, reply, path.data(), call); });
    return mounted;
  }

  const NfsProbeRequest& m_request;
  const Address& m_address;
  int m_fd;
  Deadline m_deadline, m_begin, m_until; ///< the end of the probe; the begin and the end of the present stage
  const uid_t m_uid = ::geteuid();       ///< the user who would mount, before the child becomes nobody
  const gid_t m_gid = ::getegid();
  Fd m_reserved_for_nfs, m_reserved_for_mountd;
  AddressAnswers m_answers;
  /// Of the present call. They stand before the context, because libnfs keeps their address as long as it exists.
  Read m_read;
  std::optional<ServerAnswer> m_finished;
  std::unique_ptr<nfs_context, void (*)(nfs_context*)> m_context;
  rpc_context* m_rpc = nullptr;
};

} // namespace

std::vector<std::string> access_paths(const NfsProbeRequest& request, const std::vector<ExportListing>& exports) {
  auto paths = request.want_access ? request.paths : std::vector<std::string>();
  if (request.want_access && paths.empty())
    for (const ExportListing& one : exports)
      paths.push_back(one.directory);
  return paths;
}

void ask_address(const NfsProbeRequest& request, const Address& address, int fd) {
  AddressProbe(request, address, fd).run();
}

std::string encode(const AddressAnswers& answers) {
  return WireWriter().put(answers).framed();
}

std::optional<AddressAnswers> decode_last(std::string_view bytes) {
  std::string_view last;
  for (WireReader frames(bytes); !frames.at_end();) {
    const std::string_view frame = frames.text();
    if (!frames.ok())
      break; // the child ended in the middle of this frame
    last = frame;
  }
  WireReader reader(last);
  AddressAnswers answers;
  answers.stages.clear();
  reader.get(answers);
  return reader.ok() && reader.at_end() && is_sound(answers) ? std::optional(std::move(answers)) : std::nullopt;
}

} // namespace sharefs::sys
