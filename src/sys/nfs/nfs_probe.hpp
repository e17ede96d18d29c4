#pragma once
// Probes an NFS server: name, TCP, portmapper, mountd, NFS v3 and v4, exports, and the access of this host. A child
// without privileges asks, because servers may be hostile. One deadline holds for everything; root is not needed.
#include "base/fields.hpp"
#include "base/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sharefs::sys {

enum class ProbeStage { resolve, connect, portmapper, mountd, nfs3, nfs4, exports, access };
const char* to_string(ProbeStage stage);

struct NfsPorts {
  std::uint16_t nfs = 2049;
  std::uint16_t portmapper = 111; ///< only tests use another
  std::uint16_t mountd = 0;       ///< 0: the portmapper is asked
};

struct NfsProbeRequest {
  std::string host;                        ///< name or address
  std::vector<std::string> paths = {};     ///< the exports whose access is asked; empty: all in the list
  std::chrono::milliseconds timeout{5000}; ///< for the whole probe
  bool want_access = true;                 ///< ask what this host may mount: mountd (MNT), and NFS 4 for `paths`
  NfsPorts ports = {};
};

enum class StageOutcome {
  ok,
  absent, ///< not offered, but not always needed (a server with only v4 has no portmapper)
  failed,
  skipped, ///< an earlier stage failed, or the stage was not requested
};
const char* to_string(StageOutcome outcome);

struct StageResult {
  ProbeStage stage = ProbeStage::resolve;
  StageOutcome outcome = StageOutcome::skipped;
  std::chrono::microseconds round_trip{0};
  std::string detail = {}; ///< "192.168.16.1", "Connection refused", "no answer within 5 s", "versions 3, 4"
  std::string cause = {};  ///< usual cause of a failure, one line; empty if ok
  std::string hint = {};   ///< usual cure
};

template <FieldsOf<StageResult> S> auto fields(S& s) {
  return named("stage", s.stage, "outcome", s.outcome, "round_trip_us", s.round_trip, "detail", s.detail, "cause",
               s.cause, "hint", s.hint);
}

struct ExportListing {
  std::string directory;
  std::vector<std::string> clients; ///< as the server wrote them; empty: everyone

  friend bool operator==(const ExportListing&, const ExportListing&) = default;
};

template <FieldsOf<ExportListing> E> auto fields(E& e) {
  return named("directory", e.directory, "clients", e.clients);
}

struct ExportAccess {
  std::string directory;
  bool allowed = false;
  /// "access denied by server", "no such export", "only Kerberos (krb5)"; if it is allowed: a referral, or empty
  std::string reason;
  std::string address = {}; ///< the server's address from which this host may mount it; empty if none is known
  /// The only version by which it may be mounted (3 or 4), since the other one has another path for it, or none; 0: not
  /// known to be the only one. With fsid=0, and on NFS-Ganesha (`Pseudo`), the paths of NFS 4 are not those of NFS 3.
  int version = 0;

  friend bool operator==(const ExportAccess&, const ExportAccess&) = default;
};

template <FieldsOf<ExportAccess> E> auto fields(E& e) {
  return named("directory", e.directory, "allowed", e.allowed, "reason", e.reason, "version", e.version);
}

struct NfsProbe {
  std::string host;
  /// If the host has several addresses: the first, in getaddrinfo(3)'s order, from which this host may mount all
  /// requested paths, or else the one from which it may mount most of them.
  std::string address;
  std::vector<StageResult> stages; ///< one per stage, in order
  bool v3 = false, v4 = false;     ///< the server offers this version
  int v4_minor = 2;                ///< the newest minor version of 4 that it offers; 2 as long as it is not known
  /// It is not known whether this version is offered: no answer in time, a lost connection, or an unreadable reply.
  bool v3_unknown = false, v4_unknown = false;
  std::vector<ExportListing> exports;
  std::vector<ExportAccess> access;
  std::chrono::milliseconds took{0};

  /// Returns the result of a stage; `skipped` if there is none.
  [[nodiscard]] const StageResult& result_of(ProbeStage stage) const;
  /// Returns the first failed stage that makes the server unusable for the version (3, 4, or 0 for either of them).
  [[nodiscard]] const StageResult* failing(int version = 0) const;
  [[nodiscard]] bool usable(int version = 0) const { return failing(version) == nullptr; }
};

template <FieldsOf<NfsProbe> P> auto fields(P& p) {
  return named("host", p.host, "address", p.address, "v3", p.v3, "v4", p.v4, "v4_minor", p.v4_minor, "v3_unknown",
               p.v3_unknown, "v4_unknown", p.v4_unknown, "took_ms", p.took, "stages", p.stages, "exports", p.exports,
               "access", p.access);
}

/// Probes a server. Never takes longer than request.timeout (plus scheduling). The function itself never fails;
/// `stages` has the failures. Several threads may call it at the same time.
NfsProbe probe_nfs_server(const NfsProbeRequest& request);

} // namespace sharefs::sys
