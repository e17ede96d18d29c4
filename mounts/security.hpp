#pragma once
// What Kerberos (sec=krb5...) and TLS (xprtsec=...) need of this host before mount.nfs is asked: it would only say
// "access denied", or wait.
#include "base/diagnosis.hpp"
#include "mounts/mount_point.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <set>
#include <string>

namespace sharefs::mounts {

struct SecurityFacts {
  std::set<std::string> daemons; ///< of rpc.gssd and tlshd those that run
  bool keytab = false;           ///< /etc/krb5.keytab is there
  friend bool operator==(const SecurityFacts&, const SecurityFacts&) = default;
};

/// True if one of `points` asks for either: no profile does.
bool needs_security(const std::vector<MountPoint>& points);
SecurityFacts security_facts(sys::System& system, std::chrono::milliseconds deadline);
/// SF238 for what is missing, by name.
Diagnoses check_security(const MountPoint& point, const SecurityFacts& facts);

} // namespace sharefs::mounts
