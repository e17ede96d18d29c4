// Asks one address of a server, in the child, and writes the report. Also has the parent's decoder of the report, which
// checks each field, because a hostile server may have taken over the child.
#include "base/path.hpp"
#include "base/text.hpp"
#include "sys/net/connect.hpp"
#include "sys/nfs/rpc_client.hpp"
#include "sys/process/sandbox.hpp"
#include "sys/process/wire.hpp"

#include <algorithm>

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

/// Converts a status of NFS 4 to the answer that MNT would have given.
ServerAnswer convert_to_mount(const ServerAnswer& answer) {
  constexpr int wrong_security = 10016, moved = 10019; // RFC 7530
  if (answer == ServerAnswer{Fault::status, wrong_security})
    return {Fault::only_kerberos};
  return answer == ServerAnswer{Fault::status, moved} ? ServerAnswer{Fault::moved} : answer;
}

bool is_mismatch(const ServerAnswer& answer) {
  return answer == ServerAnswer{Fault::status, k_minor_version_mismatch};
}

class AddressProbe {
 public:
  AddressProbe(const NfsProbeRequest& request, const Address& address, int fd)
      : m_request(request), m_address(address), m_fd(fd), m_deadline(deadline_in(request.timeout)) {}

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
    if (!ask_nfs3())
      return;
    ask_nfs4();
    ask_portmapper();
    if (m_answers.mountd_port != 0)
      ask_mountd();
  }

 private:
  /// Begins a stage and returns its deadline. It gets a part of the remaining time, so that a stage without an answer
  /// leaves time for the others.
  Deadline begin(int percent = 100) {
    m_begin = Clock::now();
    return m_deadline <= m_begin ? m_deadline : m_begin + (m_deadline - m_begin) * percent / 100;
  }

  void finish(ProbeStage stage, const ServerAnswer& answer = {}) {
    m_answers[stage] = answer;
    m_answers[stage].round_trip = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - m_begin);
    write_all(m_fd, encode(m_answers));
  }

  /// Connects to a port; null if this fails, and then the stage has failed.
  std::unique_ptr<RpcClient> connect(ProbeStage stage, std::uint16_t port, Deadline until, Fd reserved = {}) {
    auto connected = connect_to({m_address}, port, until, std::move(reserved));
    if (connected)
      return std::make_unique<RpcClient>(std::move(*connected), m_uid, m_gid);
    finish(stage, {Fault::connection, connected.error()});
    return nullptr;
  }

  bool ask_nfs3() {
    const auto nfs3 = connect(ProbeStage::connect, m_request.ports.nfs, begin());
    if (!nfs3)
      return false;
    finish(ProbeStage::connect);
    const Deadline until = begin(40);
    finish(ProbeStage::nfs3, nfs3->null(k_program_nfs, 3, until));
    return true;
  }

  /// Uses a new connection, because after a timeout the old one cannot be used. Version 4 is asked for its root, which
  /// needs a running mountd, unlike NULL, which the kernel answers itself.
  void ask_nfs4() {
    const Deadline until = begin(40);
    const auto nfs4 = connect(ProbeStage::nfs4, m_request.ports.nfs, until, std::move(m_reserved_for_nfs));
    if (!nfs4)
      return;
    const ServerAnswer root = nfs4->look_up({}, 0, until);
    const auto paths = m_request.want_access ? m_request.paths : std::vector<std::string>();
    if (root.fault == Fault::refused) {
      // A server that requires Kerberos refuses everything but NULL, and so does one that exports nothing to this
      // address.
      m_answers.access.assign(paths.size(), {{Fault::timeout}, root});
      return finish(ProbeStage::nfs4, nfs4->null(k_program_nfs, 4, until));
    }
    finish(ProbeStage::nfs4, is_answer(root) ? ServerAnswer() : root);
    if (!is_answer(root))
      return;
    find_minor_version(*nfs4, until);
    if (!is_mismatch(root)) // a lookup in another minor version than 0 would need a session
      look_up(*nfs4, paths, until);
    write_all(m_fd, encode(m_answers));
  }

  void find_minor_version(RpcClient& nfs4, Deadline until) {
    for (auto minor = k_newest_minor; minor > 0; --minor) {
      const ServerAnswer tried = nfs4.look_up({}, minor, until);
      if (!is_answer(tried))
        return;
      if (!is_mismatch(tried)) {
        m_answers.v4_minor = minor;
        return;
      }
    }
    m_answers.v4_minor = 0;
  }

  void look_up(RpcClient& nfs4, const std::vector<std::string>& paths, Deadline until) {
    for (const std::string& path : paths) {
      auto names = split(normalize_path(path), '/');
      std::erase(names, "");
      const ServerAnswer found = nfs4.look_up(names, 0, until);
      m_answers.access.push_back({{Fault::timeout}, convert_to_mount(found)});
      if (!is_answer(found))
        return;
    }
  }

  void ask_portmapper() {
    m_answers.mountd_port = m_request.ports.mountd;
    const Deadline until = begin(50);
    if (m_answers.mountd_port != 0)
      return finish(ProbeStage::portmapper);
    const auto portmapper = connect(ProbeStage::portmapper, m_request.ports.portmapper, until);
    if (!portmapper)
      return;
    const bool is_ipv6 = m_address.storage.ss_family == AF_INET6;
    ServerAnswer failed = portmapper->find_mountd(is_ipv6, m_answers.mountd_port, until);
    if (is_ipv6 && failed.fault == Fault::unsupported)
      failed = portmapper->find_mountd(false, m_answers.mountd_port, until);
    finish(ProbeStage::portmapper, failed);
    begin();
    if (failed.fault == Fault::none && m_answers.mountd_port == 0)
      finish(ProbeStage::mountd, {Fault::unregistered});
  }

  void ask_mountd() {
    const Deadline until = begin(70);
    const auto mountd = connect(ProbeStage::mountd, m_answers.mountd_port, until, std::move(m_reserved_for_mountd));
    if (!mountd)
      return;
    finish(ProbeStage::mountd, mountd->null(k_program_mount, 3, until));
    if (m_answers[ProbeStage::mountd].fault != Fault::none)
      return;
    begin();
    ServerAnswer listed = mountd->list_exports(m_answers.exports, until);
    if (listed.fault == Fault::none && !is_sound(m_answers)) { // the list is larger than the parent accepts
      m_answers.exports.clear();
      listed = {Fault::unreadable};
    }
    if (listed.fault != Fault::none)
      return finish(ProbeStage::exports, listed);
    finish(ProbeStage::exports, {m_answers.exports.empty() ? Fault::nothing : Fault::none});
    begin();
    const auto paths = m_request.want_access ? access_paths(m_request, m_answers.exports) : std::vector<std::string>();
    m_answers.access.resize(paths.size());
    for (std::size_t i = 0; i < paths.size(); ++i) {
      m_answers.access[i].by_mountd = mountd->mount(paths[i], m_deadline);
      if (!is_answer(m_answers.access[i].by_mountd))
        break;
    }
    if (!paths.empty())
      finish(ProbeStage::access);
  }

  const NfsProbeRequest& m_request;
  const Address& m_address;
  int m_fd;
  Deadline m_deadline, m_begin = Clock::now(); ///< the end of the probe, and the begin of the present stage
  const uid_t m_uid = ::geteuid();             ///< the user who would mount, before the child becomes nobody
  const gid_t m_gid = ::getegid();
  Fd m_reserved_for_nfs, m_reserved_for_mountd;
  AddressAnswers m_answers;
};

} // namespace

std::vector<std::string> access_paths(const NfsProbeRequest& request, const std::vector<ExportListing>& exports) {
  if (!request.paths.empty())
    return request.paths;
  std::vector<std::string> paths;
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
