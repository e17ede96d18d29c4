#include "config/keys.hpp"

#include "base/path.hpp"
#include "base/source.hpp"
#include "base/text.hpp"
#include "base/visible.hpp"
#include "config/source.hpp"
#include "config/yaml_text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::config {

namespace {

constexpr std::size_t k_longest_value = 4095; ///< PATH_MAX without its NUL; no other value may be longer

std::optional<Complaint> complain_if(bool wrong, const char* what, const char* hint) {
  return wrong ? std::optional(Complaint{what, hint}) : std::nullopt;
}

bool has_space(std::string_view text) {
  return text.find_first_of(" \t") != std::string_view::npos;
}
bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<Complaint> path_rule(std::string_view text) {
  if (text.starts_with('~'))
    return Complaint{"is not an absolute path", "`~` is not expanded here; begin the path with `/`"};
  if (!text.starts_with('/'))
    return Complaint{"is not an absolute path", "begin it with `/`", normalize_path(text)};
  if (auto normal = normalize_path(text); normal != text)
    return Complaint{"is not a normalized path", "leave out `.`, `..` and slashes that say nothing", std::move(normal)};
  return std::nullopt;
}

/// The rule for a path that may hold variables, whose values are known only when a command runs.
std::optional<Complaint> node_path_rule(std::string_view text) {
  const auto sample =
      expand_variables(text, [](std::string_view, std::size_t at) { return std::string(at == 0 ? "/x" : "x"); });
  if (!sample)
    return Complaint{"has a `$` in front of no variable", "write for example `$SLURM_TMPDIR` or `${TMPDIR}/cache`"};
  auto complaint = path_rule(*sample);
  if (complaint && *sample != text)
    complaint->instead.clear(); // it was made from the sample, not from the user's text
  return complaint;
}

} // namespace

std::optional<Complaint> mode_rule(std::string_view text) {
  return complain_if(text.size() < 3 || text.size() > 4 || !parse_mode(text), "is not a mode",
                     "write three or four octal digits in quotes, for example `\"2770\"`");
}

std::optional<Complaint> host_rule(std::string_view text) {
  if (text.find('/') != std::string_view::npos)
    return Complaint{"is not a host", "write the host name or address only; directories are listed under `exports`"};
  if (has_space(text) || text.find_first_of(",()[]") != std::string_view::npos || text.starts_with('-') ||
      text.size() > 255)
    return Complaint{"is not a host", "write a host name or an IP address"};
  return complain_if(std::ranges::count(text, ':') == 1, "has a port",
                     "write the host name or address only; ssh_config(5) has a line `Port` for ssh");
}

std::optional<Complaint> remote_rule(std::string_view text) {
  const auto [server, remote_path] = parse_source(text);
  if (server.empty() || !remote_path.starts_with('/'))
    return Complaint{"is not SERVER:/PATH", "write for example `storage1:/mnt/share`"};
  if (const auto complaint = host_rule(server))
    return Complaint{"names no host before the `:`", "write for example `storage1:/mnt/share`"};
  if (auto complaint = path_rule(remote_path))
    return Complaint{complaint->what, std::move(complaint->hint), format_source(server, complaint->instead)};
  return std::nullopt;
}

std::optional<Complaint> below_root_rule(std::string_view text) {
  return complain_if(text == "/", "cannot be `/`", "choose a directory below it");
}

std::optional<Complaint> mount_point_rule(std::string_view text) {
  // What this host boots from and runs. Programs, sharefs.yaml and the journal are among it. Sites mount /home, /opt,
  // /usr/local, and directories below /etc and /var.
  constexpr std::string_view k_of_system = "/etc /usr /run /root /tmp /var /var/cache /var/lib /var/log /var/tmp";
  constexpr std::string_view k_with_all_below =
      "/bin /sbin /lib /lib64 /usr/bin /usr/sbin /usr/lib /usr/lib64 /boot /dev /proc /sys /etc/exports.d /etc/sharefs "
      "/etc/systemd /var/lib/dpkg /var/lib/nfs /var/lib/rpm /var/lib/sharefs /var/lib/systemd";
  if (contains(split_words(k_of_system), std::string(text)) ||
      std::ranges::any_of(split_words(k_with_all_below), [&](const auto& one) { return is_under(text, one); }))
    return Complaint{"would hide a directory of the system", "choose a directory of its own, as /data/share"};
  return below_root_rule(text);
}

std::optional<Complaint> share_rule(std::string_view text) {
  const auto parts = split(text, '/');
  if (std::ranges::find(parts, "..") != parts.end())
    return Complaint{"leads out of the mount", "write the path of a directory below the mount point, without `..`"};
  if (text.starts_with('~'))
    return Complaint{"is not a path below the mount point", "write for example `outputs`"};
  const auto normal = normalize_path("/" + std::string(text)).substr(1);
  if (text.starts_with('/'))
    return Complaint{"is an absolute path", "write it as seen from the mount point, for example `outputs`", normal};
  if (normal.empty())
    return Complaint{"is the mount point itself", "write `access:` at its export, on the server"};
  return normal == text ? std::nullopt
                        : std::optional(Complaint{"is not a normalized path",
                                                  "leave out `.` and slashes that say nothing", normal});
}

std::optional<Complaint> client_rule(std::string_view text) {
  if (text.find_first_of("()") != std::string_view::npos)
    return Complaint{"must not hold parentheses", "options belong in `options: [...]`"};
  if (has_space(text) || text.find(',') != std::string_view::npos)
    return Complaint{"must be a single client", "write each client as an element of its own"};
  return complain_if(text.starts_with('-'), "is not a client", "see exports(5)");
}

std::optional<Complaint> option_rule(std::string_view text) {
  const bool quoted = text.find('"') != std::string_view::npos; // context="system_u:...:s0:c1,c2"
  return complain_if(!quoted && (has_space(text) || text.find_first_of(",()") != std::string_view::npos),
                     "must be a single option", "write each option as an element of its own: `[rw, sync]`");
}

// Only the characters are checked here: the fleet parses the pattern (fleet/pattern.cpp) and reports the column of an
// error.
std::optional<Complaint> nodes_rule(std::string_view text) {
  const bool closed = std::ranges::count(text, '[') == std::ranges::count(text, ']');
  constexpr std::string_view k_signs = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-[],/!&^@:*? ";
  return complain_if(text.starts_with('-') || !closed || text.find_first_not_of(k_signs) != std::string_view::npos,
                     "names no nodes", "write names as nodeset does, in quotes: `\"gpu[01-64]\"`, `\"gpu1,gpu2\"`");
}

std::optional<Complaint> group_rule(std::string_view text) {
  if (text == "all" || text == "servers" || text == "clients")
    return Complaint{"is the name of a group that always exists", "choose another name"};
  constexpr std::string_view k_signs = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return complain_if(text.starts_with('-') || text.find_first_not_of(k_signs) != std::string_view::npos,
                     "is not a name for a group", "use letters, digits, `_` and `-`");
}

std::optional<Complaint> partition_rule(std::string_view text) {
  return complain_if(text.starts_with('-') || has_space(text), "is not a name of a partition", "`sinfo` shows them");
}

std::optional<Complaint> account_rule(std::string_view text) {
  // Names of useradd(8) and of directory services: DOMAIN\alice, alice@example.com, alice.smith, machine$
  const bool bad = has_space(text) || text.find_first_of("/:,~+*?[]{}()<>|&;\"'`=!#%") != std::string_view::npos ||
                   text.starts_with('-') || text == "." || text == ".." || text.size() > 255;
  if (bad)
    return Complaint{"is not a name that an account can have", "write one name per element, as `id` knows it"};
  return complain_if(is_digits(text), "is a number", "write the name, not the id");
}

std::optional<Complaint> environment_rule(std::string_view text) {
  // It becomes a directory's name, and the name of a backup is longer.
  constexpr std::size_t k_longest_environment = 200;
  if (text.find('/') != std::string_view::npos)
    return Complaint{"is a path, not the name of an environment", "write its name only", base_name(text)};
  if (has_space(text) || text.starts_with('-') || text.starts_with('.') ||
      text.find_first_of(":#\\") != std::string_view::npos) // conda refuses most of these in names (base/context.py)
    return Complaint{"is not a name that a conda environment can have", "see `conda env list`"};
  if (text.find(".sharefs-backup-") != std::string_view::npos)
    return Complaint{"is the name of a backup that sharefs made",
                     "`sharefs conda unlink` puts a backup back in its place"};
  if (text.size() > k_longest_environment)
    return Complaint{"is too long for the name of an environment", "use at most 200 bytes"};
  if (text == "base" || text == "root")
    return Complaint{"is the conda installation itself, not an environment below `envs`",
                     "clone it into one that can be shared: `conda create -n NAME --clone base`"};
  return std::nullopt;
}

std::optional<Complaint> conda_rule(std::string_view text) {
  if (auto complaint = below_root_rule(text); complaint || text.starts_with('/'))
    return complaint ? complaint : path_rule(text);
  if (text.starts_with('~'))
    return Complaint{"is relative to each home already", "leave out the `~/`",
                     normalize_path(text.substr(1)).substr(1)};
  const auto normal = normalize_path(text).substr(1);
  if (normal.empty() || normal != text)
    return Complaint{"is not a normalized path below the home", "write for example `miniconda3`", normal};
  return std::nullopt;
}

std::optional<Complaint> flag_rule(std::string_view text) {
  if (!text.starts_with('-') || text.find_first_not_of('-') == std::string_view::npos)
    return Complaint{"is not an option", "write for example `--cache_dir`", "--" + std::string(text)};
  return complain_if(has_space(text) || text.find('=') != std::string_view::npos, "must be an option without its value",
                     "write for example `--cache_dir`");
}

std::optional<Complaint> size_rule(std::string_view text) {
  return complain_if(!parse_size(text), "is not a size", "write for example `20G` or `0`");
}

std::optional<Complaint> count_rule(std::string_view text) {
  constexpr std::size_t k_most_digits = 4;
  const auto significant = text.substr(std::min(text.find_first_not_of('0'), text.size()));
  if (!is_digits(text) || text.size() > k_most_digits || significant.empty())
    return Complaint{"is not a number from 1 to 9999", "write for example `3`"};
  // Readers of YAML 1.1 take it for an octal number, and for text if it has an 8 or a 9.
  const bool is_ambiguous = significant.size() < text.size() && (significant.size() > 1 || significant > "7");
  return is_ambiguous ? std::optional(Complaint{"begins with a zero: other readers of YAML take it for an octal number",
                                                fmt::format("write `{}`", significant)})
                      : std::nullopt;
}

std::optional<Complaint> interval_rule(std::string_view text) {
  constexpr std::int64_t k_shortest = 1000, k_longest = 3'600'000; // milliseconds
  const auto span = parse_duration(text);
  return complain_if(!span || *span < k_shortest || *span > k_longest, "is not a time from 1s to 1h",
                     "write for example `30s` or `2min`");
}

// node_exporter reads only files ending in .prom (collector/textfile.go).
std::optional<Complaint> textfile_rule(std::string_view text) {
  return complain_if(!text.ends_with(".prom") || text.ends_with("/.prom"), "does not end in `.prom`",
                     "node_exporter reads no other file");
}

std::optional<Complaint> program_rule(std::string_view text) {
  return complain_if(text.find('/') != std::string_view::npos, "is a path",
                     "write the file name of the script, with wildcards if you like");
}

namespace {

std::optional<Complaint> find_complaint(const Key& key, std::string_view value) {
  if (value.size() > k_longest_value)
    return Complaint{fmt::format("has {} bytes", value.size()), fmt::format("a value has at most {}", k_longest_value)};
  if (find_invisible(value))
    return Complaint{"holds an invisible character", "remove it; nothing on this machine should have such a name"};
  // An empty pattern for programs means every program; no other value may be empty.
  if (value.empty() && key.rule != program_rule)
    return Complaint{"is empty", key.is_list()  ? "remove the empty element"
                                 : key.required ? fmt::format("it needs a value ({})", key.description)
                                                : "leave the key out for its default"};
  if (key.type == ValueType::path || key.type == ValueType::path_list)
    if (auto complaint = key.type == ValueType::path ? path_rule(value) : node_path_rule(value))
      return complaint;
  return key.rule == nullptr ? std::nullopt : key.rule(value);
}

} // namespace

std::optional<Complaint> check_value(const Key& key, std::string_view value) {
  auto complaint = find_complaint(key, value);
  if (!complaint || complaint->instead.empty())
    return complaint;
  const auto written = yaml_scalar(complaint->instead);
  if (shown(written) == written && !find_complaint(key, complaint->instead))
    complaint->hint = fmt::format("write `{}`", written);
  return complaint;
}

std::optional<Complaint> check_name(std::string_view name) {
  const bool bad = name.empty() || name.starts_with('-') || name.starts_with('.') || name.size() > 64 ||
                   find_invisible(name) ||
                   name.find_first_of(" \t/:,;@\\\"'`$*?[]{}()<>|&#%=!~^+") != std::string_view::npos;
  return complain_if(bad, "is not a name",
                     "use letters, digits, `.`, `_` and `-`, at most 64, beginning with a letter or digit");
}

} // namespace sharefs::config
