#include "cli/commands/anonymize.hpp"

#include "cli/command.hpp"
#include "cli/commands/explain_pages.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>
#include <vector>

namespace sharefs::cli {

namespace {

constexpr std::string_view k_hidden = "*****";
constexpr std::array<std::string_view, 9> k_secret_words{"password", "passwd", "passphrase", "pass",      "secret",
                                                         "token",    "apikey", "api_key",    "credential"};
/// Of the machine and its tools, whoever uses it. (What sharefs' own pages say is known, too.)
constexpr std::string_view k_own_words =
    "bin boot dev etc home lib lib64 media mnt opt proc root run sbin srv sys tmp usr var cache local log share data "
    "systemd system service mount automount wants multi user target network online remote fs exports fstab rc d conf "
    "conda envs pkgs meta history miniconda3 anaconda3 miniforge3 condarc bin python python3 site packages json yaml "
    "nfs nfs4 nfsd self mountstats mountinfo threads versions exe stat cmdline ns maps comm wchan fdinfo fd cwd "
    "device mounted on with fstype statvers opts age impl_id caps sec events bytes RPC iostats version p v per op "
    "statistics xprt tcp udp rdma rw ro hard soft sync async noac vers rsize wsize namlen proto port timeo retrans sys "
    "clientaddr local_lock none addr nconnect relatime noatime nosuid nodev noexec defaults ext4 xfs tmpfs overlay "
    "autofs cgroup2 cgroup sysfs devtmpfs devpts Id LoadState ActiveState UnitFileState true false null generations";
/// Paths below these are the system's, not a person's.
constexpr std::array<std::string_view, 9> k_system_places{"/proc/", "/sys/", "/dev/",   "/usr/",        "/bin/",
                                                          "/sbin/", "/lib/", "/lib64/", "/run/systemd/"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}
/// How much of an escape begins here: `\x2d` of a unit's name, `\040` of mountinfo; 0: none.
std::size_t escape_at(std::string_view text) {
  if (text.size() < 4 || text[0] != '\\')
    return 0;
  const bool hex = text[1] == 'x' && is_hex(text[2]) && is_hex(text[3]);
  return hex || (is_digit(text[1]) && is_digit(text[2]) && is_digit(text[3])) ? 4 : 0;
}

/// Calls `see` with every word, and with what stands between words.
void each_word(std::string_view text, const std::function<void(std::string_view word, bool is_word)>& see) {
  while (!text.empty()) {
    std::size_t size = escape_at(text);
    bool word = false;
    if (size == 0 && is_word(text.front())) {
      word = true;
      while (size < text.size() && is_word(text[size]))
        ++size;
    }
    size = std::max<std::size_t>(size, 1);
    see(text.substr(0, size), word);
    text.remove_prefix(size);
  }
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// "MY_DB_PASSWORD", "pass", "tokens": what follows it may be one.
bool names_secret(std::string_view word) {
  const auto name = lower(word);
  return std::ranges::any_of(k_secret_words, [&](std::string_view secret) {
    const auto at = name.find(secret);
    if (at == std::string::npos || secret != "pass")
      return at != std::string::npos;
    return name == "pass" || name.ends_with("_pass");
  });
}

/// How long the value is that `text` begins with.
std::size_t value_size(std::string_view text) {
  const bool quoted = text.starts_with('"') || text.starts_with('\'');
  const auto end = quoted ? text.find(text.front(), 1) : text.find_first_of(" \t\r\n,;&\"'}");
  return end == std::string_view::npos ? text.size() : end + (quoted ? 1 : 0);
}

} // namespace

std::string without_secrets(const std::string& text) {
  std::string result;
  std::string_view rest = text, before; // `before`: the last word, if nothing but `:`, `=` and blanks came since
  bool assigned = false;
  while (!rest.empty()) {
    constexpr std::string_view k_key = "-----BEGIN ";
    if (rest.starts_with(k_key) && rest.substr(0, rest.find('\n')).find("PRIVATE KEY") != std::string_view::npos) {
      const auto end = rest.find("-----END ");
      result += k_hidden;
      rest.remove_prefix(std::min(end, rest.size()));
      continue;
    }
    if (rest.starts_with("://")) { // user:password@
      const auto host = std::min(rest.find_first_of("/ \t\n\"'", 3), rest.size());
      const auto at = rest.substr(0, host).rfind('@');
      if (at != std::string_view::npos && rest.substr(3, at - 3).find(':') != std::string_view::npos) {
        result.append("://").append(k_hidden);
        rest.remove_prefix(at);
        before = {};
        continue;
      }
    }
    const char first = rest.front();
    const bool blank = first == ' ' || first == '\t';
    std::size_t size = 1;
    if (assigned && !blank && first != '\n' && first != '=' && first != ':' && names_secret(before)) {
      rest.remove_prefix(std::max<std::size_t>(value_size(rest), 1));
      result += k_hidden;
      before = {};
      assigned = false;
      continue;
    }
    if (is_word(first)) {
      size = static_cast<std::size_t>(std::ranges::find_if_not(rest, is_word) - rest.begin());
      before = rest.substr(0, size);
      assigned = false;
    } else if (first == '=' || first == ':') {
      assigned = true;
    } else if (!blank && first != '"' && first != '\'') {
      before = {};
      assigned = false;
    }
    result += rest.substr(0, size);
    rest.remove_prefix(size);
  }
  return result;
}

OtherNames::OtherNames() {
  const auto keep = [this](std::string_view text) {
    each_word(text, [this](std::string_view word, bool is_one) {
      if (is_one)
        m_names.emplace(word, "");
    });
  };
  keep(k_own_words);
  for (const auto& page : explanations())
    for (const auto& text : {page.title, page.cause, page.usual, page.see, page.cure, page.does})
      keep(text);
  for (const auto* command : commands()) {
    keep(command->name);
    keep(command->description);
    for (const auto& option : command->options)
      keep(option.names);
  }
}

void OtherNames::add_word(std::string_view word) {
  if (word.size() < 2 || std::ranges::all_of(word, is_digit) || m_names.contains(word))
    return;
  m_names.emplace(word, fmt::format("name{}", m_names.size()));
  const auto stem = word.substr(0, word.find_last_not_of("0123456789") + 1); // of node[1-4]
  if (stem.size() < word.size())
    add_word(stem);
}

void OtherNames::add(std::string_view name) {
  each_word(name, [this](std::string_view word, bool is_one) {
    if (is_one)
      add_word(word);
  });
}

bool OtherNames::keep_words_of(std::string_view text) {
  bool changed = false;
  each_word(text, [&](std::string_view word, bool is_one) {
    const auto other = is_one ? m_names.find(word) : m_names.end();
    changed = changed || (other != m_names.end() && !other->second.empty());
    if (other != m_names.end())
      other->second.clear();
  });
  return changed;
}

void OtherNames::add_paths_of(std::string_view text) {
  for (auto at = text.find('/'); at != std::string_view::npos; at = text.find('/', at)) {
    const auto end = std::min(text.find_first_of(" \t\r\n,;\"'()<>", at), text.size());
    const auto path = text.substr(at, end - at);
    if (std::ranges::none_of(k_system_places, [&](std::string_view place) { return path.starts_with(place); }))
      add(path);
    at = end;
  }
}

std::string OtherNames::apply(std::string_view text) const {
  std::string result;
  each_word(text, [&](std::string_view word, bool is_one) {
    const auto other = is_one ? m_names.find(word) : m_names.end();
    result += other == m_names.end() || other->second.empty() ? word : std::string_view(other->second);
  });
  return result;
}

} // namespace sharefs::cli
