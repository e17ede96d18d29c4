#include "sys/mounts/mountstats.hpp"

#include "base/text.hpp"
#include "sys/fs/files.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <span>

namespace sharefs::sys {

namespace {

constexpr std::string_view k_mounted_on = " mounted on ", k_with_type = " with fstype ";

std::optional<std::uint64_t> number_of(std::string_view word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size())
    return std::nullopt;
  return value;
}

/// All of `words`; nullopt if one is no number.
std::optional<std::vector<std::uint64_t>> numbers_of(std::span<const std::string> words) {
  std::vector<std::uint64_t> numbers;
  for (const auto& word : words) {
    const auto number = number_of(word);
    if (!number)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

/// "device SOURCE mounted on TARGET with fstype nfs4 statvers=1.1". A mount of another type is `false`.
std::optional<bool> read_device(std::string_view line, MountStatistics& mount) {
  line.remove_prefix(std::string_view("device ").size());
  const auto on = line.find(k_mounted_on); // names have no blanks: they are escaped
  const auto type = line.rfind(k_with_type);
  if (on == std::string_view::npos || type == std::string_view::npos || type < on + k_mounted_on.size())
    return std::nullopt;
  const auto words = split_words(line.substr(type + k_with_type.size()));
  if (words.empty())
    return std::nullopt;
  mount.source = decode_octal(line.substr(0, on));
  mount.target = decode_octal(line.substr(on + k_mounted_on.size(), type - on - k_mounted_on.size()));
  return words[0] == "nfs" || words[0] == "nfs4";
}

/// "tcp PORT BINDS CONNECTS CONNECT_TIME IDLE SENDS REPLIES BAD_XIDS ..."; rdma is alike; udp has no connections.
bool read_transport(std::span<const std::string> words, MountStatistics& mount) {
  if (words.empty())
    return false;
  const std::size_t replies = words[0] == "udp" ? 4 : words[0] == "tcp" || words[0] == "rdma" ? 7 : 0;
  if (replies == 0)
    return true; // of a kind that is not known
  if (words.size() < replies + 2)
    return false;
  const auto numbers = numbers_of(words.subspan(replies, 2));
  const auto connects = replies == 7 ? number_of(words[3]) : std::optional<std::uint64_t>(0);
  if (!numbers || !connects)
    return false;
  mount.connects = std::max(mount.connects, *connects);
  ++mount.connections;
  mount.replies += (*numbers)[0];
  mount.bad_xids += (*numbers)[1];
  return true;
}

/// "READ: 320 320 0 60160 41976320 1 53 62 0"; before Linux 5.3 without errors.
bool read_operation(const std::string& name, std::span<const std::string> words, MountStatistics& mount) {
  constexpr std::size_t k_least_fields = 8;
  const auto numbers = numbers_of(words);
  if (!numbers || numbers->size() < k_least_fields)
    return false;
  const auto& n = *numbers;
  return mount.operations
      .emplace(name, Operation{n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n.size() > k_least_fields ? n[8] : 0})
      .second;
}

/// A line below "device"; false: a damaged one.
bool read_line(std::string_view line, const std::set<std::string_view>& only, MountStatistics& mount,
               bool& in_operations) {
  if (line == "per-op statistics") {
    in_operations = true;
    return true;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos)
    return !in_operations;
  if (in_operations && !only.empty() && !only.contains(line.substr(0, colon)))
    return true;
  const auto name = std::string(line.substr(0, colon));
  const auto rest = trim(line.substr(colon + 1));
  const auto words = split_words(rest);
  if (in_operations)
    return read_operation(name, words, mount);
  if (name == "opts") {
    mount.options = rest;
  } else if (name == "age") {
    const auto age = number_of(rest);
    if (!age || *age > static_cast<std::uint64_t>(std::chrono::seconds::max().count()))
      return false;
    mount.age = std::chrono::seconds(*age);
  } else if (name == "xprt") {
    return read_transport(words, mount);
  }
  return true;
}

/// What a counter has grown by; one that has shrunk began anew.
std::uint64_t grown(std::uint64_t now, std::uint64_t before) {
  return now >= before ? now - before : now;
}

} // namespace

const Operation& MountStatistics::operation(std::string_view name) const {
  static const Operation k_none;
  const auto found = operations.find(name);
  return found == operations.end() ? k_none : found->second;
}

std::string MountStatistics::option(std::string_view name) const {
  for (const auto& word : split(options, ','))
    if (word.starts_with(name) && (word.size() == name.size() || word[name.size()] == '='))
      return word.size() == name.size() ? "yes" : word.substr(name.size() + 1);
  return "";
}

Result<std::vector<MountStatistics>> parse_mountstats(std::string_view text, const std::set<std::string_view>& only) {
  std::vector<MountStatistics> mounts;
  bool is_nfs = false, in_operations = false;
  std::size_t number = 0;
  const auto damaged = [&number] {
    return fail(ErrorCode::failed, fmt::format("mountstats:{}: cannot be read", number));
  };
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto raw = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    const auto line = trim(raw);
    if (raw.starts_with("device ")) {
      MountStatistics mount;
      const auto kind = read_device(raw, mount);
      if (!kind)
        return damaged();
      is_nfs = *kind;
      in_operations = false;
      if (is_nfs && mounts.size() == k_most_mounts)
        return fail(ErrorCode::failed, fmt::format("mountstats has more than {} NFS mounts", k_most_mounts));
      if (is_nfs)
        mounts.push_back(std::move(mount));
    } else if (line.empty() || raw.starts_with("no device ")) {
      is_nfs = is_nfs && line.empty();
    } else if (is_nfs && !read_line(line, only, mounts.back(), in_operations)) {
      return damaged();
    }
  }
  return mounts;
}

MountStatistics since(MountStatistics now, const MountStatistics& before) {
  if (before.source != now.source || before.age > now.age)
    return now;
  now.age -= before.age;
  now.replies = grown(now.replies, before.replies);
  now.bad_xids = grown(now.bad_xids, before.bad_xids);
  now.connects = grown(now.connects, before.connects);
  for (auto& [name, operation] : now.operations) {
    const auto& was = before.operation(name);
    for (const auto field : {&Operation::count, &Operation::transmissions, &Operation::timeouts, &Operation::sent_bytes,
                             &Operation::received_bytes, &Operation::queue_ms, &Operation::rtt_ms,
                             &Operation::execute_ms, &Operation::errors})
      operation.*field = grown(operation.*field, was.*field);
  }
  return now;
}

TakeoversByTarget takeovers_in(const std::vector<MountStatistics>& mounts) {
  // Each is sent twice by a mount of its own, and its connection is made twice, or once.
  constexpr std::uint64_t k_at_first = 2;
  std::map<std::pair<std::string, std::string>, std::chrono::seconds> ages; // of a client: by address and version
  const auto client_of = [](const MountStatistics& one) { return std::pair(one.option("addr"), one.option("vers")); };
  for (const auto& one : mounts) {
    auto& age = ages[client_of(one)];
    age = std::max(age, one.age);
  }
  TakeoversByTarget found;
  for (const auto& one : mounts) {
    const auto begun = std::max(one.operation("EXCHANGE_ID").count, one.operation("SETCLIENTID").count);
    const auto by_network = std::max(one.connects, k_at_first);
    if (begun > 0)
      found.insert_or_assign(one.target, Takeovers{begun > by_network ? begun - by_network : 0, ages[client_of(one)]});
  }
  return found;
}

TakeoversByTarget read_takeovers(const Files& files) {
  const auto text = files.read_if_exists(k_mountstats, k_most_statistics);
  if (!text || !*text)
    return {};
  const auto mounts = parse_mountstats(**text, {"EXCHANGE_ID", "SETCLIENTID"});
  return mounts ? takeovers_in(*mounts) : TakeoversByTarget();
}

bool shows_second_host(const Takeovers& now, const Takeovers* before) {
  constexpr std::uint64_t k_least = 3;
  constexpr std::uint64_t k_rarest = 3600; ///< seconds; two hosts do it at least once in a lease of theirs, 90 s
  if (now.times < k_least)
    return false;
  return now.times * k_rarest >= static_cast<std::uint64_t>(now.age.count()) ||
         (before != nullptr && now.times > before->times);
}

} // namespace sharefs::sys
