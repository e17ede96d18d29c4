// What is asked of another host, and its answer: text to values, and what follows from them.
#include "base/argv.hpp"
#include "base/text.hpp"
#include "base/visible.hpp"
#include "mounts/elsewhere.hpp"
#include "sys/identity/own_host.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

constexpr std::string_view k_mark = "@sharefs ";

std::string quoted_words(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words)
    text += " " + single_quote(word);
  return text;
}

std::string ask_accounts(const char* database, const std::vector<std::string>& names) {
  if (names.empty())
    return "";
  return fmt::format("getent {0} --{1} | cut -d: -f1,3 | sed 's/^/{2}{0} /'\n", database, quoted_words(names), k_mark);
}

constexpr const char* k_begin = R"sh(LC_ALL=C; PATH=/usr/sbin:/usr/bin:/sbin:/bin; export LC_ALL PATH
say() { printf '@sharefs %s\n' "$*"; }
say host "$(uname -n)"
say boot "$(cat /proc/sys/kernel/random/boot_id)"
say time "$(date +%s)"
)sh";
constexpr const char* k_find = R"sh(
if ! said=$(cd -- "$1" 2>&1); then say missing "$1 cannot be entered there (${said##*: })"; exit 0; fi
cd -- "$1"
token=; if [ -f "$2.flock" ] && [ ! -L "$2.flock" ]; then read -r token <"$2.flock"; fi
if [ -z "$token" ]; then say missing "the test file is not in $1 there"; exit 0; fi
say token "$token"
say owner "$(stat -c %u -- "$2.flock")"
)sh";
/// Shared locks: they are refused as exclusive ones are, and the file need not be writable. flock(1) opens nothing
/// itself, so it makes no file.
constexpr const char* k_lock = R"sh(say options "$(findmnt -n -o OPTIONS -T .)"
tell() { case $2 in 0) say "$1" free;; "$3") say "$1" held;; *) say "$1" "${4:-code $2}";; esac; }
said=$(flock -s -n 9 2>&1 9<"$2.flock"); tell flock $? 1 "$said"
if command -v python3 >/dev/null; then
  said=$(python3 -I -S -c '
import errno, fcntl, sys
try:
    fcntl.lockf(0, fcntl.LOCK_SH | fcntl.LOCK_NB)
except OSError as error:
    if error.errno in (errno.EAGAIN, errno.EACCES):
        sys.exit(9)
    sys.exit(error.strerror)
' 2>&1 <"$2.posix"); tell posix $? 9 "$said"
else say posix "no python3 there"; fi
)sh";
constexpr const char* k_server = R"sh(sed 's/^/@sharefs client /' /proc/net/rpc/auth.unix.ip/content
sed 's/^/@sharefs export /' /proc/net/rpc/nfsd.export/content
:
)sh";

bool is_one_of(const std::vector<std::string>& addresses, const std::string& text) {
  const auto bytes = [](const std::string& one) { return sys::address_bytes(one.substr(0, one.find('%'))); };
  const auto wanted = bytes(text);
  return wanted && std::ranges::any_of(addresses, [&](const std::string& one) { return bytes(one) == wanted; });
}

/// For a person: without what only tells file systems apart.
std::string shown_options(const std::string& options) {
  std::vector<std::string> words;
  for (auto& word : split(options, ','))
    if (!word.starts_with("uuid="))
      words.push_back(std::move(word));
  return join(words, ",");
}

void put_account(std::map<std::string, std::string>& into, const std::string& text) {
  if (const auto colon = text.find(':'); colon != std::string::npos)
    into[text.substr(0, colon)] = text.substr(colon + 1);
}

} // namespace

std::string remote_script(const RemoteQuestion& question) {
  return "set --" + quoted_words({question.directory, question.file}) + "\n" + k_begin +
         ask_accounts("passwd", question.users) + ask_accounts("group", question.groups) + k_find +
         (question.server ? k_server : k_lock);
}

RemoteView parse_remote_view(std::string_view text) {
  RemoteView view;
  for (const auto& line : split_lines(text)) {
    if (!line.starts_with(k_mark))
      continue;
    const auto rest = std::string_view(line).substr(k_mark.size());
    const auto space = rest.find(' ');
    const auto key = rest.substr(0, space);
    const auto value = space == std::string_view::npos ? std::string() : visible(rest.substr(space + 1));
    if (std::int64_t time = 0;
        key == "time" && std::from_chars(value.data(), value.data() + value.size(), time).ec == std::errc())
      view.time = time;
    for (const auto& [name, field] : {std::pair{"host", &view.host},
                                      {"boot", &view.boot_id},
                                      {"missing", &view.missing},
                                      {"token", &view.token},
                                      {"owner", &view.owner},
                                      {"options", &view.options},
                                      {"flock", &view.flock},
                                      {"posix", &view.posix}})
      if (key == name)
        *field = value;
    if (key == "client")
      view.clients.push_back(value);
    else if (key == "export")
      view.exports.emplace_back(rest.substr(space + 1));
    else if (key == "passwd")
      put_account(view.accounts.users, value);
    else if (key == "group")
      put_account(view.accounts.groups, value);
  }
  return view;
}

Exclusion exclusion_of(const std::string& while_held, const std::string& after) {
  if (while_held == "free")
    return Exclusion::open;
  if (while_held != "held")
    return Exclusion::unknown;
  return after == "free" ? Exclusion::excludes : after == "held" ? Exclusion::stuck : Exclusion::unknown;
}

std::optional<Admission> admission_of(const RemoteView& server, const std::vector<std::string>& addresses,
                                      const std::string& path) {
  std::string client;
  for (const auto& line : server.clients)
    if (const auto words = split_words(line); words.size() >= 3 && words[0] == "nfsd" && is_one_of(addresses, words[1]))
      client = decode_octal(words[2]);
  std::optional<Admission> found;
  std::string nearest;
  for (const auto& line : server.exports) {
    const auto tab = line.find('\t'), bracket = line.rfind('(');
    if (client.empty() || line.starts_with('#') || tab == std::string::npos || bracket == std::string::npos ||
        bracket < tab || !line.ends_with(')'))
      continue;
    const auto directory = decode_octal(line.substr(0, tab));
    if (decode_octal(line.substr(tab + 1, bracket - tab - 1)) != client || !is_under(path, directory) ||
        directory.size() < nearest.size())
      continue;
    nearest = directory;
    found = Admission{visible(client), visible(shown_options(line.substr(bracket + 1, line.size() - bracket - 2)))};
  }
  return found;
}

Diagnoses compare_accounts(const MountPoint& point, const std::string& host, const Accounts& here,
                           const Accounts& there) {
  Diagnoses found;
  const auto compare = [&](const char* kind, const auto& ours, const auto& theirs) {
    const auto differs = [&](std::string message) {
      found.push_back(about(point, Severity::warning, "SF237", std::move(message),
                            "give users and groups the same numbers on all machines"));
    };
    std::map<std::string, std::string> names; // by number
    for (const auto& [name, number] : theirs)
      names[number] = name;
    for (const auto& [name, number] : ours) {
      const auto same = theirs.find(name);
      if (same != theirs.end() && same->second != number)
        differs(fmt::format("{} is {} {} here and {} on {}", name, kind, number, same->second, host));
      else if (const auto other = names.find(number); same == theirs.end() && other != names.end())
        differs(fmt::format("{} {} is {} here and {} on {}", kind, number, name, other->second, host));
    }
  };
  compare("uid", here.users, there.users);
  compare("gid", here.groups, there.groups);
  return found;
}

} // namespace sharefs::mounts
