#include "mounts/security.hpp"

#include "sys/find_processes.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

constexpr const char* k_gssd = "rpc.gssd";
constexpr const char* k_tlshd = "tlshd";
constexpr const char* k_keytab = "/etc/krb5.keytab";

std::string value_of(const MountPoint& point, std::string_view key) {
  const auto* setting = find_setting(point.options, key);
  return setting == nullptr ? "" : setting->value;
}

bool wants_kerberos(const MountPoint& point) {
  return value_of(point, "sec").starts_with("krb5");
}

bool wants_tls(const MountPoint& point) {
  const auto value = value_of(point, "xprtsec");
  return value == "tls" || value == "mtls";
}

Diagnosis lacking(const MountPoint& point, std::string_view key, std::string_view what, std::string hint) {
  return about(point, Severity::error, "SF238",
               fmt::format("{}={} needs {} on this host", key, value_of(point, key), what), std::move(hint));
}

} // namespace

bool needs_security(const std::vector<MountPoint>& points) {
  return std::ranges::any_of(points, [](const MountPoint& one) { return wants_kerberos(one) || wants_tls(one); });
}

SecurityFacts security_facts(sys::System& system, std::chrono::milliseconds deadline) {
  SecurityFacts facts;
  facts.keytab = system.entry({.path = k_keytab, .follow = true}, deadline).exists();
  for (auto& found : sys::find_processes(system, {k_gssd, k_tlshd}, sys::Namespace::network, deadline))
    facts.daemons.insert(std::move(found.name));
  return facts;
}

Diagnoses check_security(const MountPoint& point, const SecurityFacts& facts) {
  Diagnoses found;
  if (wants_kerberos(point) && !facts.keytab)
    found.push_back(
        lacking(point, "sec", k_keytab, "join the realm, or copy this host's keys there (`kadmin ktadd nfs/HOST`)"));
  if (wants_kerberos(point) && !facts.daemons.contains(k_gssd))
    found.push_back(
        lacking(point, "sec", "rpc.gssd running", "run `systemctl start rpc-gssd` (package nfs-common or nfs-utils)"));
  if (wants_tls(point) && !facts.daemons.contains(k_tlshd))
    found.push_back(lacking(point, "xprtsec", "tlshd running", "run `systemctl start tlshd` (package ktls-utils)"));
  return found;
}

} // namespace sharefs::mounts
