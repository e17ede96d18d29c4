#include "sys/fs/mountstats.hpp"

#include "base/number.hpp"
#include "base/text.hpp"
#include "sys/fs/files.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

namespace sharefs::sys {

namespace {

struct Counted {
  std::string target;
  /// Address of the server and version; the kernel has one client for each pair.
  std::pair<std::string, std::string> client = {};
  std::chrono::seconds age{0};
  std::uint64_t connects = 0; ///< the highest number of connects among its connections
  std::uint64_t names = 0;    ///< how often the client has sent its name to the server
};

/// Returns 0 for a word that is not a number.
std::uint64_t number_of(std::string_view word) {
  return parse_number<std::uint64_t>(word).value_or(0);
}

/// Reads a line below "device SOURCE mounted on TARGET with fstype nfs4 statvers=1.1".
void read_line(std::string_view line, Counted& mount) {
  const auto colon = line.find(':');
  const auto name = line.substr(0, colon);
  const auto rest = colon == std::string_view::npos ? "" : trim(line.substr(colon + 1));
  if (name == "opts") {
    mount.client = {option_value(rest, "addr").value_or(""), option_value(rest, "vers").value_or("")};
  } else if (name == "age") {
    constexpr std::uint64_t k_century = 100ULL * 366 * 86'400; // a damaged number must not overflow
    mount.age = std::chrono::seconds(std::min(number_of(rest), k_century));
  } else if (name == "xprt") { // "tcp PORT BINDS CONNECTS ..."; rdma has the same fields
    const auto words = split_words(rest);
    if (words.size() > 3 && words[0] != "udp")
      mount.connects = std::max(mount.connects, number_of(words[3]));
  } else if (name == "EXCHANGE_ID" || name == "SETCLIENTID") { // "COUNT TRANSMISSIONS TIMEOUTS ..."
    mount.names = std::max(mount.names, number_of(rest.substr(0, rest.find(' '))));
  }
}

} // namespace

TakeoversByTarget takeovers_in(std::istream& mountstats) {
  constexpr std::string_view k_mounted_on = " mounted on ", k_with_type = " with fstype ";
  std::vector<Counted> mounts;
  bool is_nfs4 = false;
  for (std::string text; std::getline(mountstats, text);) {
    const std::string_view line = text;
    if (!line.starts_with("device ")) {
      if (is_nfs4)
        read_line(trim(line), mounts.back());
      continue;
    }
    const auto on = line.find(k_mounted_on), type = line.rfind(k_with_type); // blanks in names are escaped
    is_nfs4 = on != std::string_view::npos && type != std::string_view::npos && type > on + k_mounted_on.size() &&
              line.substr(type + k_with_type.size()).starts_with("nfs4");
    if (is_nfs4)
      mounts.push_back(
          {.target = decode_octal(line.substr(on + k_mounted_on.size(), type - on - k_mounted_on.size()))});
  }
  std::map<std::pair<std::string, std::string>, std::chrono::seconds> ages; // by client
  for (const auto& one : mounts)
    ages[one.client] = std::max(ages[one.client], one.age);
  // A new mount sends the client's name twice, and connects once or twice.
  constexpr std::uint64_t k_at_first = 2;
  TakeoversByTarget found;
  for (const auto& one : mounts) {
    const auto by_network = std::max(one.connects, k_at_first);
    if (one.names > 0)
      found.insert_or_assign(one.target,
                             Takeovers{one.names > by_network ? one.names - by_network : 0, ages[one.client]});
  }
  return found;
}

TakeoversByTarget read_takeovers(const Files& files) {
  constexpr const char* k_mountstats = "/proc/self/mountstats";
  if (files.is_live()) { // line by line: each mount takes 3 KiB, so the text of a thousand mounts is megabytes
    std::ifstream lines(k_mountstats);
    return takeovers_in(lines);
  }
  std::istringstream text(files.read(k_mountstats).value_or(""));
  return takeovers_in(text);
}

bool shows_second_host(const Takeovers& now, const Takeovers* before) {
  constexpr std::uint64_t k_least = 3;
  constexpr std::uint64_t k_rarest = 3600; ///< seconds; two hosts do it at least once in each lease time, 90 s
  if (now.times < k_least)
    return false;
  return now.times * k_rarest >= static_cast<std::uint64_t>(now.age.count()) ||
         (before != nullptr && now.times > before->times);
}

} // namespace sharefs::sys
