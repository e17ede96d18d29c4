#include "fleet/host_keys.hpp"

#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>

namespace sharefs::fleet {

namespace {

constexpr std::string_view k_digest = "SHA256:";
constexpr std::array<std::string_view, 2> k_by_strength{"ssh-ed25519", "ecdsa-sha2-"};

std::size_t rank_of(const HostKey& key) {
  for (std::size_t i = 0; i < k_by_strength.size(); ++i)
    if (key.type.starts_with(k_by_strength[i]))
      return i;
  return k_by_strength.size();
}

/// Settings by which ssh speaks to a node, whatever the key is; in the words of `ssh -G`.
constexpr std::array<std::string_view, 8> k_kept_settings{"ciphers",
                                                          "macs",
                                                          "kexalgorithms",
                                                          "hostkeyalgorithms",
                                                          "casignaturealgorithms",
                                                          "pubkeyacceptedalgorithms",
                                                          "pubkeyacceptedkeytypes",
                                                          "certificatefile"};

/// Returns a command that connects to a node through the jump hosts of ProxyJump. Unlike ProxyJump it does not pass on
/// our ssh_config, which has nothing about the jump hosts.
std::string jump_command(const std::string& proxy_jump) {
  const auto comma = proxy_jump.rfind(',');
  const auto last = proxy_jump.substr(comma == std::string::npos ? 0 : comma + 1);
  return fmt::format("ssh -o BatchMode=yes {}-W '[%h]:%p' {}{}",
                     comma == std::string::npos ? "" : "-J " + proxy_jump.substr(0, comma) + " ",
                     last.starts_with("ssh://") ? "" : "ssh://", last);
}

/// Joins the values as words for ssh_config(5).
std::string join_for_ssh(std::vector<std::string> values) {
  for (auto& value : values)
    if (value.find(' ') != std::string::npos)
      value = "\"" + value + "\"";
  return join(values, " ");
}

/// Returns the part of `user@name:` that may be the name of a node.
std::string bare_name(std::string word) {
  if (const auto at = word.find('@'); at != std::string::npos)
    word.erase(0, at + 1);
  while (!word.empty() && (word.back() == ':' || word.back() == ','))
    word.pop_back();
  return word;
}

std::vector<std::string> known_names(const Reached& reached) {
  std::vector<std::string> names{reached.ssh.known_name()};
  if (reached.ssh.host_key_alias.empty())
    for (const auto& name : names_of(reached))
      if (const auto whole = reached.ssh.with_port(name); std::ranges::find(names, whole) == names.end())
        names.push_back(whole);
  return names;
}

} // namespace

std::string SshSettings::with_port(const std::string& name) const {
  return port == "22" || port.empty() ? lower_case(name) : fmt::format("[{}]:{}", lower_case(name), port);
}

std::string SshSettings::known_name() const {
  return host_key_alias.empty() ? with_port(host) : lower_case(host_key_alias);
}

SshSettings parse_ssh_settings(std::string_view text, const std::string& home, std::string_view defaults) {
  const auto absolute = [&](const std::string& file) {
    return file.starts_with("~/") ? join_path(home, file.substr(2)) : file;
  };
  const auto all_absolute = [&](const std::string& files) {
    auto found = split_words(files);
    std::ranges::transform(found, found.begin(), absolute);
    return found;
  };
  std::map<std::string, std::vector<std::string>> values;
  const auto usual = split_lines(defaults);
  std::vector<std::string> kept;
  for (const auto& line : split_lines(text)) {
    const auto space = std::min(line.find(' '), line.size());
    if (std::ranges::find(k_kept_settings, std::string_view(line).substr(0, space)) != k_kept_settings.end() &&
        !contains(usual, line))
      kept.push_back(line);
    const std::string value(trim(std::string_view(line).substr(space)));
    if (!value.empty() && value != "none")
      values[line.substr(0, space)].push_back(value);
  }
  const auto last = [&](const char* key) { return values[key].empty() ? std::string() : values[key].back(); };
  auto keys = values["identityfile"];
  std::ranges::transform(keys, keys.begin(), absolute);
  return {.host = lower_case(last("hostname")),
          .port = last("port"),
          .user = last("user"),
          .host_key_alias = last("hostkeyalias"),
          .proxy_jump = last("proxyjump"),
          .proxy_command = last("proxycommand"),
          .identity_files = std::move(keys),
          .user_known_hosts = all_absolute(last("userknownhostsfile")),
          .global_known_hosts = all_absolute(last("globalknownhostsfile")),
          .kept = std::move(kept)};
}

std::string ssh_config_with_key(const std::vector<Reached>& nodes) {
  std::string text;
  for (const auto& [node, ssh, keys, key] : nodes) {
    text += fmt::format("Host {}\n  HostName {}\n  Port {}\n  User {}\n", node.name, ssh.host, ssh.port, ssh.user);
    if (!ssh.host_key_alias.empty())
      text += fmt::format("  HostKeyAlias {}\n", ssh.host_key_alias);
    if (!ssh.proxy_jump.empty())
      text += fmt::format("  ProxyCommand {}\n", jump_command(ssh.proxy_jump));
    else if (!ssh.proxy_command.empty())
      text += fmt::format("  ProxyCommand {}\n", ssh.proxy_command);
    if (!ssh.user_known_hosts.empty())
      text += fmt::format("  UserKnownHostsFile {}\n", join_for_ssh(ssh.user_known_hosts));
    if (!ssh.global_known_hosts.empty())
      text += fmt::format("  GlobalKnownHostsFile {}\n", join_for_ssh(ssh.global_known_hosts));
    for (const auto& line : ssh.kept)
      text += fmt::format("  {}\n", line);
    const auto& files = ssh.identity_files;
    for (const auto& file : key.empty() ? files : std::vector<std::string>{key})
      text += fmt::format("  IdentityFile {}\n", join_for_ssh({file}));
    if (!key.empty())
      text += "  IdentitiesOnly yes\n";
  }
  return text;
}

std::map<std::string, std::vector<HostKey>> parse_keyscan(std::string_view out) {
  std::map<std::string, std::vector<HostKey>> found;
  for (const auto& line : split_lines(out)) {
    const auto words = split_words(line);
    if (words.size() < 3 || words.front().starts_with('#'))
      continue;
    found[words[0]].push_back({words[1], words[2], ""});
  }
  for (auto& [name, keys] : found)
    std::ranges::stable_sort(keys, {}, rank_of);
  return found;
}

std::string known_hosts_lines(const std::vector<Reached>& nodes) {
  std::string text;
  for (const auto& reached : nodes)
    for (const auto& key : reached.keys)
      text += fmt::format("{} {} {}\n", join(known_names(reached), ","), key.type, key.key);
  return text;
}

Result<void> read_fingerprints(std::string_view out, std::vector<Reached>& nodes) {
  std::vector<std::string> fingerprints;
  for (const auto& line : split_lines(out))
    for (const auto& word : split_words(line))
      if (word.starts_with(k_digest)) {
        fingerprints.push_back(word);
        break;
      }
  auto next = fingerprints.begin();
  for (auto& reached : nodes)
    for (auto& key : reached.keys) {
      if (next == fingerprints.end())
        return fail(ErrorCode::failed, "`ssh-keygen -l` does not understand the keys that nodes offer");
      key.fingerprint = *next++;
    }
  return next == fingerprints.end() ? Result<void>()
                                    : fail(ErrorCode::failed, "`ssh-keygen -l` has printed more than there are keys");
}

Result<std::map<std::string, std::set<std::string>>> parse_fingerprint_list(std::string_view text,
                                                                            const std::vector<Reached>& nodes) {
  std::map<std::string, std::string> names; // from every name of a node to its main name
  for (const auto& reached : nodes)
    for (const auto& name : names_of(reached))
      names.emplace(name, reached.node.name);
  std::map<std::string, std::set<std::string>> listed;
  for (const auto& line : split_lines(text)) {
    const auto words = split_words(line);
    const auto digest = std::ranges::find_if(words, [](const std::string& word) { return word.starts_with(k_digest); });
    if (digest == words.end())
      continue;
    // The comment behind the digest was chosen by root of the machine that printed it: it may name another node.
    const bool has_bits = digest != words.begin() && parse_number<unsigned>(*std::prev(digest));
    const std::span before(words.begin(), has_bits ? std::prev(digest) : digest);
    std::set<std::string> named;
    for (const auto& word : before.empty() ? std::span(digest, words.end()) : before)
      if (const auto found = names.find(bare_name(word)); found != names.end())
        named.insert(found->second);
    if (named.size() > 1)
      return fail(ErrorCode::config,
                  fmt::format("a line with {} names two nodes: {}", *digest, join({named.begin(), named.end()}, ", ")),
                  "write one node's name in front of each fingerprint");
    for (const auto& name : named)
      listed[name].insert(*digest);
  }
  return listed;
}

std::string with_host_keys(const std::string& before, const std::vector<Reached>& accepted) {
  return with_line_end(before) + known_hosts_lines(accepted);
}

std::string with_authority(const std::string& before, const std::vector<Reached>& nodes,
                           const std::string& public_key) {
  std::vector<std::string> names;
  for (const auto& reached : nodes)
    for (const auto& name : known_names(reached))
      names.push_back(name);
  const auto words = split_words(public_key);
  const auto key = words.size() < 2 ? std::string() : words[0] + " " + words[1];
  std::string text;
  for (const auto& line : split_lines(before)) {
    if (line.starts_with("@cert-authority ") && line.find(" " + key) != std::string::npos) {
      const auto parts = split_words(line);
      for (const auto& name : split(parts.size() > 1 ? parts[1] : "", ','))
        if (!name.empty() && std::ranges::find(names, name) == names.end())
          names.push_back(name);
      continue;
    }
    text += line + "\n";
  }
  return text + fmt::format("@cert-authority {} {}\n", join(names, ","), key);
}

std::vector<std::string> names_of(const Reached& reached) {
  std::vector<std::string> names{reached.node.name};
  for (const auto& name : {reached.node.address, reached.ssh.host, reached.ssh.host_key_alias})
    if (!name.empty() && std::ranges::find(names, name) == names.end())
      names.push_back(name);
  return names;
}

} // namespace sharefs::fleet
