#include "mounts/boot_text.hpp"

#include "base/argv.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "mounts/shell_commands.hpp"
#include "sys/configured_mounts.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

constexpr std::size_t k_longest_unit_name = 255;
/// How long systemd waits for a mount, and for its unmount, in seconds: a power-off with a dead server takes so long.
constexpr int k_mount_seconds = 30;
constexpr int k_pause_seconds = 5; ///< between two tries to mount
/// The first and the last lines of an rc.local that sharefs has made.
constexpr std::string_view k_rc_local_head = "#!/bin/sh\n# Made by sharefs, and deleted when nothing else is in it\n",
                           k_rc_local_end = "exit 0\n";

tl::unexpected<Error> cannot_be_written(const MountPoint& point, std::string_view where, std::string_view why) {
  return fail(ErrorCode::failed, fmt::format("{} cannot be written into {}: {}", point.target, where, why),
              "choose a plainer path, or another way with `boot:`");
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, is_control);
}

/// Returns the options at boot, without `bg` and `retry`: mount.nfs tries in the foreground, and the unit or script
/// that starts it decides whether to try again.
std::string boot_options(const MountPoint& point) {
  if (point.here) {
    const auto options = bind_options(point.options);
    return options.empty() ? "bind" : "bind," + options;
  }
  auto settings = for_mount(point.options);
  std::erase_if(settings, [](const Setting& one) { return one.key == "ground" || one.key == "retry"; });
  return format_options(settings);
}

std::string source_of(const MountPoint& point) {
  return point.here ? point.path : format_source(point.server, point.path);
}

/// Writes blanks, backslashes and control characters as octal numbers (fstab(5)).
std::string fstab_field(std::string_view text) {
  std::string field;
  for (const char c : text)
    field += c == ' ' || c == '\\' || is_control(c) ? fmt::format("\\{:03o}", static_cast<unsigned char>(c))
                                                    : std::string(1, c);
  return field;
}

/// Splits a text into lines with their newlines. The last line may have none.
std::vector<std::string> whole_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto size = end == std::string_view::npos ? text.size() : end + 1;
    lines.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

/// Returns the target of our line in fstab; "" for any other line.
std::string target_of(std::string_view line) {
  const auto fields = split_words(line);
  const bool ours =
      fields.size() >= 4 && !fields[0].starts_with('#') && std::ranges::count(split(fields[3], ','), k_fstab_mark) > 0;
  return ours ? normalize_path(decode_octal(fields[1])) : "";
}

/// Returns the rest of a line that begins with `mark`, without newline; "" for any other line.
std::string rest_after(std::string_view mark, std::string_view line) {
  if (!line.starts_with(mark))
    return "";
  line.remove_prefix(mark.size());
  return std::string(line.substr(0, line.find('\n')));
}

bool is_block_mark(std::string_view line) {
  return line.starts_with(k_block_begins) || line.starts_with(k_block_ends);
}

/// A part of a file: our entry for `target`, or, if that is empty, a line that others wrote.
struct Part {
  std::string text, target;
};

std::vector<Part> fstab_parts(std::string_view text) {
  std::vector<Part> parts;
  for (const auto& line : whole_lines(text))
    parts.push_back({line, target_of(line)});
  return parts;
}

std::vector<Part> rc_local_parts(std::string_view text) {
  std::vector<Part> parts;
  const auto lines = whole_lines(text);
  for (auto line = lines.begin(); line != lines.end(); ++line) {
    const auto target = rest_after(k_block_begins, *line);
    const auto end = target.empty() ? lines.end() : std::find_if(line + 1, lines.end(), is_block_mark);
    if (end == lines.end() ||
        rest_after(k_block_ends, *end) != target) { // a block without its end mark may hold lines of others
      parts.push_back({*line, ""});
      continue;
    }
    parts.push_back({join(std::vector<std::string>(line, end + 1), ""), target});
    line = end;
  }
  return parts;
}

std::vector<Part> parts_of(BootFile file, std::string_view text) {
  return file == BootFile::fstab ? fstab_parts(text) : rc_local_parts(text);
}

} // namespace

std::string escape_unit(std::string_view path) {
  const auto inner = normalize_path(path).substr(1);
  if (inner.empty())
    return "-";
  std::string name;
  for (const char c : inner) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ':' ||
                       c == '_' || (c == '.' && !name.empty());
    if (c == '/')
      name += '-';
    else
      name += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return name;
}

std::string unescape_unit(std::string_view name) {
  std::string path = "/";
  for (std::size_t i = 0; i < name.size() && name != "-"; ++i) {
    unsigned byte = 0;
    const bool escape = name.substr(i, 2) == "\\x" && i + 4 <= name.size() &&
                        std::from_chars(name.data() + i + 2, name.data() + i + 4, byte, 16).ptr == name.data() + i + 4;
    path += escape ? static_cast<char>(byte) : name[i] == '-' ? '/' : name[i];
    i += escape ? 3 : 0;
  }
  return path;
}

std::string unit_path(const std::string& name) {
  return join_path(sys::k_unit_directory, name);
}

UnitTexts unit_names(const std::string& target) {
  const auto name = escape_unit(target);
  return {name + ".mount", name + ".automount", "sharefs-" + name + ".service"};
}

Result<UnitTexts> unit_texts(const MountPoint& point, const std::string& program) {
  const auto names = unit_names(point.target);
  const auto source = source_of(point);
  const auto options = boot_options(point);
  if (names.service.size() > k_longest_unit_name)
    return cannot_be_written(point, "a systemd unit", "its name would be longer than 255 bytes");
  for (const auto& text : {point.target, source, options, program, name_of(point)})
    if (has_control(text) || text.ends_with('\\'))
      return cannot_be_written(point, "a systemd unit", "a control character, or a backslash at the end");

  const auto head = fmt::format("{}changes are lost; `sharefs umount --forget {}` removes this file\n[Unit]\n",
                                k_unit_mark, name_of(point));
  UnitTexts texts;
  texts.mount =
      head + fmt::format("Description={}, {} on {}\nStartLimitIntervalSec=0\n\n"
                         "[Mount]\nWhat={}\nWhere={}\nType={}\nOptions={},nofail\nTimeoutSec={}\n",
                         unit_value(name_of(point)), unit_value(source), unit_value(point.target), unit_value(source),
                         unit_value(point.target), point.here ? "none" : "nfs", unit_value(options), k_mount_seconds);
  const std::string install = "\n[Install]\nWantedBy=multi-user.target\n";
  if (point.here)
    texts.mount += install;
  texts.automount = head + fmt::format("Description={}, mounted at its first use\n\n[Automount]\nWhere={}\n{}",
                                       unit_value(name_of(point)), unit_value(point.target), install);
  // Without DefaultDependencies=no multi-user.target would wait for the server.
  texts.service = head + fmt::format("Description={}: wait for {}, then mount it\n"
                                     "DefaultDependencies=no\n"
                                     "Wants=network-online.target\n"
                                     "After=basic.target network-online.target\n"
                                     "Conflicts=shutdown.target\n"
                                     "Before=shutdown.target slurmd.service\n\n"
                                     "[Service]\nType=oneshot\nRemainAfterExit=yes\nTimeoutStartSec=infinity\n"
                                     "ExecStart={} probe --until-ready {}{}\n"
                                     "ExecStart=systemctl start {}\n"
                                     "Restart=on-failure\nRestartSec={}\nStandardOutput=null\n{}",
                                     unit_value(name_of(point)), unit_value(server_of(point)), unit_command(program),
                                     sys::port_words(ports_of(point)), unit_command(source), unit_command(names.mount),
                                     k_pause_seconds, install);
  return texts;
}

Result<std::string> fstab_line(const MountPoint& point, bool bg) {
  if (has_control(point.target + point.server + point.path))
    return cannot_be_written(point, "/etc/fstab", "a control character");
  const auto options = boot_options(point);
  if (point.here)
    return fmt::format("{} {} none {},nofail,{} 0 0", fstab_field(point.path), fstab_field(point.target),
                       fstab_field(options), k_fstab_mark);
  return fmt::format("{} {} nfs {},_netdev,nofail,{},{} 0 0", fstab_field(source_of(point)), fstab_field(point.target),
                     fstab_field(options), bg ? "bg" : fmt::format("x-systemd.mount-timeout={}", k_mount_seconds),
                     k_fstab_mark);
}

BootTexts our_texts(BootFile file, std::string_view text) {
  BootTexts ours;
  for (const auto& part : parts_of(file, text))
    if (!part.target.empty())
      ours.insert_or_assign(part.target, part.text);
  return ours;
}

std::string with_texts(BootFile file, std::string_view text, const BootTexts& texts) {
  const bool is_script = file == BootFile::rc_local;
  const bool is_new =
      is_script && text.empty() && std::ranges::any_of(texts, [](const auto& one) { return one.second.has_value(); });
  const auto old = is_new ? fmt::format("{}{}", k_rc_local_head, k_rc_local_end) : std::string(text);
  const auto parts = parts_of(file, old);
  const auto ending = is_script ? ending_line(old) : 0;
  std::vector<std::string> result;
  std::optional<std::size_t> place;
  std::size_t line = 1;
  auto missing = texts;
  for (const auto& part : parts) {
    if (line == ending)
      place = result.size();
    const auto found = part.target.empty() ? texts.end() : texts.find(part.target);
    const bool never_runs = ending != 0 && line > ending;
    if (found == texts.end())
      result.push_back(with_line_end(part.text));
    else if (!(never_runs && found->second) && missing.erase(found->first) > 0 && found->second)
      result.push_back(with_line_end(*found->second));
    line += static_cast<std::size_t>(std::ranges::count(part.text, '\n'));
  }
  std::string added;
  for (const auto& [target, one] : missing)
    added += one ? with_line_end(*one) : "";
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(place.value_or(result.size())), added);
  auto all = join(result, "");
  if (!parts.empty() && !parts.back().text.ends_with('\n') && all.ends_with('\n'))
    all.pop_back();
  return all;
}

Result<std::string> rc_local_block(const MountPoint& point, const std::string& program, const std::string& outer) {
  const auto options = boot_options(point);
  const auto words = shell_join({point.here ? point.path : source_of(point), point.target});
  // shell_join() may quote by $'...', which not every shell understands.
  if (has_control(point.target) || words.find("$'") != std::string::npos)
    return cannot_be_written(point, "rc.local", "a control character, or bytes that are no text");
  std::string command = fmt::format("mount {} {} {}", point.here ? "-o" : "-t nfs -o", shell_quote(options), words);
  // `mountpoint` would ask a server that may not answer.
  const auto is_mounted = [](const std::string& target) {
    return fmt::format("grep -qF {} /proc/mounts", shell_quote(fmt::format(" {} ", fstab_field(target))));
  };
  if (!point.here)
    command = fmt::format("{} probe --until-ready {}{} >/dev/null && {}", shell_quote(program),
                          sys::port_words(ports_of(point)), shell_quote(source_of(point)), command);
  if (!outer.empty())
    command = fmt::format("{} && {}", is_mounted(outer), command);
  if (!point.here || !outer.empty())
    command =
        fmt::format("(until {}; do\n  {} || sleep {}\ndone) &", is_mounted(point.target), command, k_pause_seconds);
  return fmt::format("{0}{3}\n{1}\n{2}{3}\n", k_block_begins, command, k_block_ends, point.target);
}

bool is_bare_rc_local(std::string_view text) {
  return text == fmt::format("{}{}", k_rc_local_head, k_rc_local_end);
}

bool has_other_commands(std::string_view rc_local) {
  return std::ranges::any_of(rc_local_parts(rc_local), [](const Part& part) {
    const auto line = trim(part.text);
    return part.target.empty() && !line.empty() && !line.starts_with('#') && line != "exit 0" &&
           line != "touch /var/lock/subsys/local";
  });
}

} // namespace sharefs::mounts
