// What Kerberos and TLS need of the server. The client's side of it is in mounts/security.cpp.
#include "base/argv.hpp"
#include "base/text.hpp"
#include "exports/server.hpp"
#include "sys/find_processes.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::exports {

namespace {

constexpr std::size_t k_config_limit = 65536;

bool asks_for_kerberos(const Export& one) {
  return std::ranges::any_of(one.settings.security, [](const Flavour& two) { return two.name.starts_with("krb5"); });
}

/// "" if it does not: `tls` or `mtls`.
std::string tls_of(const Export& one) {
  const auto modes = split(one.settings.value("xprtsec"), ':');
  for (const auto* mode : {"mtls", "tls"})
    if (std::ranges::find(modes, mode) != modes.end())
      return mode;
  return "";
}

/// Collects what one export lacks.
class Lacking {
 public:
  Lacking(const Export& one, std::string option, std::string without)
      : m_directory(one.directory), m_option(std::move(option)), m_without(std::move(without)) {}
  void add(std::string_view what, std::string hint) {
    found.push_back(
        {Severity::warning, "SF155", m_directory,
         fmt::format("`{}` needs {} on this host: clients cannot mount it by {}", m_option, what, m_without),
         std::move(hint), ""});
  }
  void add_exposed(const std::string& key) {
    found.push_back({Severity::warning, "SF155", m_directory,
                     fmt::format("others than root can read the private key {} of `{}`", key, m_option),
                     fmt::format("run `chown root {0}; chmod 600 {0}`", shell_quote(key)), ""});
  }
  Diagnoses found;

 private:
  std::string m_directory, m_option, m_without;
};

Diagnoses check_kerberos(sys::System& system, const Export& one) {
  Lacking lacking(one, "sec=krb5", "Kerberos");
  if (!system.entry({.path = "/etc/krb5.keytab", .follow = true}).exists())
    lacking.add("/etc/krb5.keytab", "join the realm, or `kadmin ktadd nfs/HOST` there");
  if (sys::find_processes(system, {"gssproxy", "rpc.svcgssd"}, sys::Namespace::network).empty())
    lacking.add("gssproxy or rpc.svcgssd running", "run `systemctl start gssproxy` (package gssproxy)");
  return std::move(lacking.found);
}

/// The keys that tlshd.conf(5) names for servers.
void check_keys(sys::System& system, const std::string& config, std::string_view text, Lacking& lacking) {
  for (const auto& [key, what] : {std::pair{"x509.certificate", "certificate"}, {"x509.private_key", "private key"}}) {
    const auto path = value_in_section(text, "authenticate.server", key);
    if (!path || path->empty()) {
      lacking.add(fmt::format("`{}` in [authenticate.server] of {}", key, config),
                  fmt::format("write the path of this host's {} there, then run `systemctl restart tlshd`", what));
      continue;
    }
    if (!path->starts_with('/'))
      continue; // a token's URL
    const auto file = system.entry({.path = *path, .follow = true});
    if (file.kind == sys::EntryKind::missing)
      lacking.add(fmt::format("the {} {}", what, *path), "put it there; " + config + " names it");
    else if (key == std::string_view("x509.private_key") && (file.uid != 0 || (file.mode & 077U) != 0))
      lacking.add_exposed(*path);
  }
}

Diagnoses check_tls(sys::System& system, const Export& one) {
  Lacking lacking(one, "xprtsec=" + tls_of(one), "TLS");
  // Older kernels ignore the word without a sign, and serve in the clear. grep is exact where their versions are not.
  sys::Command grep;
  grep.argv = {"grep", "-qw", "tls_server_hello_x509", "/proc/kallsyms"};
  const auto symbol = system.run(grep);
  if (symbol && symbol->exit_code == 1)
    lacking.add("a kernel with TLS for NFS (CONFIG_NET_HANDSHAKE)", "Linux 6.4 and later have it");
  if (sys::find_processes(system, {"tlshd"}, sys::Namespace::network).empty())
    lacking.add("tlshd running", "run `systemctl start tlshd` (package ktls-utils)");
  constexpr std::array k_configs{"/etc/tlshd/config", "/etc/tlshd.conf"}; // the second one in older versions
  for (const auto* config : k_configs) {
    const auto entry = system.entry({.path = config, .follow = true, .read_bytes = k_config_limit});
    if (!entry.exists())
      continue;
    if (entry.error_number == 0) // else it is not ours to read
      check_keys(system, config, entry.content, lacking);
    return std::move(lacking.found);
  }
  lacking.add("/etc/tlshd.conf", "install the package ktls-utils, and name certificate and private key there");
  return std::move(lacking.found);
}

} // namespace

std::optional<std::string> value_in_section(std::string_view text, std::string_view section, std::string_view key) {
  std::optional<std::string> value;
  bool inside = false;
  for (const auto& line : split_lines(text)) {
    const auto word = trim(std::string_view(line).substr(0, line.find_first_of("#;")));
    const auto equals = word.find('=');
    if (word.starts_with('['))
      inside = trim(word.substr(1, word.find(']') - 1)) == section;
    else if (inside && equals != std::string_view::npos && trim(word.substr(0, equals)) == key)
      value = trim(word.substr(equals + 1));
  }
  return value;
}

Diagnoses check_security(sys::System& system, const std::vector<Export>& exports) {
  Diagnoses found;
  if (const auto one = std::ranges::find_if(exports, asks_for_kerberos); one != exports.end())
    found = check_kerberos(system, *one);
  const auto by_tls = [](const Export& one) { return !tls_of(one).empty(); };
  if (const auto one = std::ranges::find_if(exports, by_tls); one != exports.end())
    std::ranges::move(check_tls(system, *one), std::back_inserter(found));
  return found;
}

} // namespace sharefs::exports
