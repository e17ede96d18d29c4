// Why a stage of the NFS probe usually fails, and what usually helps.
#include "sys/nfs/server_answers.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace sharefs::sys {
namespace {

struct Cause {
  ProbeStage stage;
  Fault fault;
  int error_number; ///< of a connection
  std::string_view cause, hint;
};
constexpr std::string_view k_check_resolver =
    "check /etc/resolv.conf, add the server to /etc/hosts, or use its address";

const Cause* find_cause(ProbeStage stage, const Failure& failure) {
  using enum ProbeStage;
  using enum Fault;
  static constexpr auto k_causes = std::to_array<Cause>({
      {resolve, no_such_name, 0, "the name is in neither the name service nor /etc/hosts",
       "check its spelling, or use the server's address"},
      {resolve, timeout, 0, "the name server does not answer", k_check_resolver},
      {resolve, name_service, 0, "the name service failed", k_check_resolver},
      {connect, connection, ECONNREFUSED, "the host is up, but no NFS server is running there",
       "start it: `sharefs export --all` on the server, or `systemctl start nfs-server`"},
      {connect, connection, EHOSTUNREACH, "no machine answers at this address: it is off, or the address is wrong",
       "check the address and the cable, and that the server is on"},
      {connect, connection, ENETUNREACH, "this host has no route to that network", "check `ip route` and the address"},
      {connect, connection, ETIMEDOUT, "the server is off or hangs, or a firewall drops packets to TCP port 2049",
       "see if the server is on (`ping`), then open TCP port 2049 in its firewall"},
      {connect, connection, EPERM, "a firewall on this host forbids the connection",
       "check the rules for outgoing packets"},
      {portmapper, connection, ECONNREFUSED, "rpcbind is not running there: without it NFS version 3 cannot be mounted",
       "on the server: `systemctl start rpcbind`, then `systemctl restart nfs-server`; or use version 4"},
      {portmapper, connection, ETIMEDOUT, "a firewall drops packets to TCP port 111, which NFS version 3 needs",
       "open TCP port 111 and mountd's port in the server's firewall, or use version 4"},
      {portmapper, timeout, 0, "rpcbind accepts connections but hangs",
       "on the server: `systemctl restart rpcbind nfs-server`"},
      {mountd, unregistered, 0, "rpc.mountd is not running: without it NFS version 3 cannot be mounted",
       "on the server: `systemctl restart nfs-server`, or use version 4"},
      {mountd, connection, ECONNREFUSED, "rpc.mountd is registered, but it has ended: NFS version 3 cannot be mounted",
       "on the server: `systemctl restart nfs-server`"},
      {mountd, connection, ETIMEDOUT, "a firewall drops packets to mountd's port, which NFS version 3 needs",
       "open mountd's port in the server's firewall (fix it by `port=` under [mountd] in /etc/nfs.conf), or use "
       "version 4"},
      {mountd, timeout, 0,
       "rpc.mountd hangs, often in a name look-up of a client or on a directory that does not answer",
       "on the server: check its name service, then `systemctl restart nfs-server`"},
      {mountd, unsupported, 0, "mountd does not offer version 3",
       "set `vers3=y` under [nfsd] in the server's /etc/nfs.conf, or use version 4"},
      {nfs3, timeout, 0, "the server accepts connections but hangs: overloaded, or its disk does not answer",
       "look at `dmesg` and the load on the server"},
      {nfs3, unsupported, 0, "version 3 is switched off on the server",
       "use version 4, or set `vers3=y` under [nfsd] in the server's /etc/nfs.conf"},
      {nfs4, timeout, 0,
       "the server accepts connections but hangs: overloaded, its disk does not answer, or rpc.mountd, which it asks "
       "who may mount, has ended",
       "on the server: `systemctl restart nfs-server`, and look at `dmesg` and the load"},
      {nfs4, unsupported, 0, "version 4 is switched off on the server",
       "use version 3, or set `vers4=y` under [nfsd] in the server's /etc/nfs.conf"},
      {exports, nothing, 0, "the server's exports file is empty, not loaded, or has an error in its first line",
       "on the server: `sharefs export --all`, or `sharefs export check` and `exportfs -ra`"},
  });
  const auto* found = std::find_if(k_causes.begin(), k_causes.end(), [&](const Cause& one) {
    return one.stage == stage && one.fault == failure.fault &&
           (failure.fault != connection || one.error_number == failure.error_number);
  });
  return found == k_causes.end() ? nullptr : found;
}

} // namespace

std::string describe(const Failure& failure) {
  static constexpr std::array k_words{"",
                                      "no host of this name is known",
                                      "the name service failed: ",
                                      "",
                                      "no answer",
                                      "the server closed the connection",
                                      "not offered",
                                      "the server refuses this host's calls",
                                      "the server sent a reply that cannot be read",
                                      "not registered with the portmapper",
                                      "nothing is exported",
                                      "this host could not ask: ",
                                      "only Kerberos (krb5)",
                                      ""};
  if (failure.fault == Fault::connection && failure.error_number == ETIMEDOUT)
    return "no answer";
  const std::string words(name_in(k_words, failure.fault));
  return failure.error_number == 0 ? words : words + errno_text(failure.error_number);
}

StageResult failed_stage(ProbeStage stage, const StageAnswer& answer, std::uint16_t port) {
  const Failure& failure = answer.failure;
  StageResult result{stage, StageOutcome::failed, answer.round_trip, describe(failure), {}, {}};
  result.cause = "what answers there is not a sound NFS server";
  result.hint = "check that the address is the server's, and restart its NFS service";
  if (failure.fault == Fault::connection) {
    const std::string where = "TCP port " + std::to_string(port);
    result.detail = where + ": " + result.detail;
    result.cause = "no connection to " + where;
    result.hint = "check the network between this host and the server";
  }
  if (failure.fault == Fault::not_asked) {
    result.cause = "this host lacks memory, processes or descriptors, or forbids sharefs to start a process";
    result.hint = "see what uses them up (`ulimit -a`, `free`), then try again";
  }
  if (result.detail.ends_with("no answer"))
    result.detail += " within " + format_duration(answer.round_trip.count());
  if (const Cause* known = find_cause(stage, failure)) {
    result.cause = known->cause;
    result.hint = known->hint;
  }
  return result;
}

const char* to_string(ProbeStage stage) {
  static constexpr std::array k_names{"resolve", "connect", "portmapper", "mountd", "nfs3",
                                      "nfs4",    "exports", "access",     "unknown"};
  return name_in(k_names, stage);
}

const char* to_string(StageOutcome outcome) {
  static constexpr std::array k_names{"ok", "absent", "failed", "skipped", "unknown"};
  return name_in(k_names, outcome);
}

} // namespace sharefs::sys
