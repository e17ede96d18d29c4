#include "sys/nfs/nfs_causes.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace sharefs::sys {
namespace {

struct ErrnoRow {
  int error_number;
  ProbeStage stage;
  std::string_view cause, hint;
};
constexpr std::array<ErrnoRow, 10> k_connection_rows{{
    {ECONNREFUSED, ProbeStage::connect, "the host is up, but no NFS server is running there",
     "start it: `sharefs export` on the server, or `systemctl start nfs-server`"},
    {ECONNREFUSED, ProbeStage::portmapper, "rpcbind is not running there: without it NFS version 3 cannot be mounted",
     "on the server: `systemctl start rpcbind`, then `systemctl restart nfs-server`; or use version 4"},
    {ECONNREFUSED, ProbeStage::mountd, "rpc.mountd is registered, but it has ended",
     "on the server: `systemctl restart nfs-server`"},
    {EHOSTUNREACH, ProbeStage::connect, "no machine answers at this address: it is off, or the address is wrong",
     "check the address and the cable, and that the server is on"},
    {ENETUNREACH, ProbeStage::connect, "this host has no route to that network", "check `ip route` and the address"},
    {ETIMEDOUT, ProbeStage::connect, "the server is off or hangs, or a firewall drops packets to TCP port 2049",
     "see if the server is on (`ping`), then open TCP port 2049 in its firewall"},
    {ETIMEDOUT, ProbeStage::portmapper, "a firewall drops packets to TCP port 111, which NFS version 3 needs",
     "open TCP port 111 and mountd's port in the server's firewall, or use version 4"},
    {ETIMEDOUT, ProbeStage::mountd, "a firewall drops packets to mountd's port, which NFS version 3 needs",
     "open mountd's port in the server's firewall (fix it by `port=` under [mountd] in /etc/nfs.conf), or use version "
     "4"},
    {EACCES, ProbeStage::connect, "a firewall on this host forbids the connection",
     "check the rules for outgoing packets"},
    {EPERM, ProbeStage::connect, "a firewall on this host forbids the connection",
     "check the rules for outgoing packets"},
}};

struct CallRow {
  ErrorCode code;
  ProbeStage stage;
  std::string_view cause, hint;
};
constexpr std::array<CallRow, 10> k_call_rows{{
    {ErrorCode::not_found, ProbeStage::resolve, "the name is in neither the name service nor /etc/hosts",
     "check its spelling, or use the server's address"},
    {ErrorCode::timeout, ProbeStage::resolve, "the name server does not answer",
     "check /etc/resolv.conf, add the server to /etc/hosts, or use its address"},
    {ErrorCode::failed, ProbeStage::resolve, "the name service failed",
     "check /etc/resolv.conf, add the server to /etc/hosts, or use its address"},
    {ErrorCode::timeout, ProbeStage::nfs3,
     "the server accepts connections but hangs: overloaded, or its disk does not answer",
     "look at `dmesg` and the load on the server"},
    {ErrorCode::timeout, ProbeStage::nfs4,
     "the server accepts connections but hangs: overloaded, or its disk does not answer",
     "look at `dmesg` and the load on the server"},
    {ErrorCode::unsupported, ProbeStage::nfs3, "version 3 is switched off on the server",
     "use version 4, or set `vers3=y` under [nfsd] in the server's /etc/nfs.conf"},
    {ErrorCode::unsupported, ProbeStage::nfs4, "version 4 is switched off on the server",
     "use version 3, or set `vers4=y` under [nfsd] in the server's /etc/nfs.conf"},
    {ErrorCode::timeout, ProbeStage::portmapper, "rpcbind accepts connections but hangs",
     "on the server: `systemctl restart rpcbind nfs-server`"},
    {ErrorCode::timeout, ProbeStage::mountd,
     "rpc.mountd hangs, often in a name look-up of a client or on a directory that does not answer",
     "on the server: check its name service, then `systemctl restart nfs-server`"},
    {ErrorCode::unsupported, ProbeStage::mountd, "mountd does not offer version 3",
     "set `vers3=y` under [nfsd] in the server's /etc/nfs.conf, or use version 4"},
}};

template <class Rows, class Matches> void set_words(const Rows& rows, Matches matches, StageResult& result) {
  const auto* row = std::find_if(rows.begin(), rows.end(), matches);
  if (row == rows.end())
    return;
  result.cause = row->cause;
  result.hint = row->hint;
}

StageResult failed(ProbeStage stage) {
  StageResult result;
  result.stage = stage;
  result.outcome = StageOutcome::failed;
  return result;
}

} // namespace

StageResult connection_failure(ProbeStage stage, int error_number, std::uint16_t port) {
  StageResult result = failed(stage);
  const std::string where = "TCP port " + std::to_string(port);
  result.detail = where + ": " + (error_number == ETIMEDOUT ? "no answer" : errno_text(error_number));
  result.cause = "no connection to " + where;
  result.hint = "check the network between this host and the server";
  const auto same = [&](const ErrnoRow& row) { return row.error_number == error_number && row.stage == stage; };
  set_words(k_connection_rows, same, result);
  return result;
}

StageResult call_failure(ProbeStage stage, const Error& error) {
  StageResult result = failed(stage);
  result.detail = error.message;
  result.cause = "what answers there is not a sound NFS server";
  result.hint = "check that the address is the server's, and restart its NFS service";
  const auto same = [&](const CallRow& row) { return row.code == error.code && row.stage == stage; };
  set_words(k_call_rows, same, result);
  return result;
}

const char* to_string(ProbeStage stage) {
  switch (stage) {
  case ProbeStage::resolve:
    return "resolve";
  case ProbeStage::connect:
    return "connect";
  case ProbeStage::portmapper:
    return "portmapper";
  case ProbeStage::mountd:
    return "mountd";
  case ProbeStage::nfs3:
    return "nfs3";
  case ProbeStage::nfs4:
    return "nfs4";
  case ProbeStage::exports:
    return "exports";
  case ProbeStage::access:
    return "access";
  }
  return "unknown";
}

const char* to_string(StageOutcome outcome) {
  switch (outcome) {
  case StageOutcome::ok:
    return "ok";
  case StageOutcome::absent:
    return "absent";
  case StageOutcome::failed:
    return "failed";
  case StageOutcome::skipped:
    return "skipped";
  }
  return "unknown";
}

} // namespace sharefs::sys
