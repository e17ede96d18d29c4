#include "base/path.hpp"
#include "base/text.hpp"
#include "watch/performance.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>

namespace sharefs::watch {

namespace {

/// A request of data waits for a disk: 10 ms of a hard disk, and ten others before it. Copies of large files fill the
/// line, and come near to that on a good one.
constexpr std::int64_t k_slow_data_us = 100'000;
/// Attributes of files in use are answered from the server's memory: what takes longer is another continent, or a
/// server that has no time.
constexpr std::int64_t k_slow_attributes_us = 20'000;
/// Over TCP a request is sent again only after 60 s (`timeo=600`) or when a connection broke: one of a thousand is no
/// matter of chance. Fewer than that many are a server's restart.
constexpr std::uint64_t k_lost_of = 1'000, k_least_lost = 10;
/// What the kernel reads ahead (128 KiB) should fit into one request.
constexpr std::uint64_t k_usual_size = 128U << 10U;

struct Kind {
  std::string_view name, words;
  std::int64_t slow_us;
  bool waits; ///< a program waits for each; what is written waits in the queue of the kernel, which is its purpose
};
constexpr std::array<Kind, 3> k_kinds{{{"READ", "reads", k_slow_data_us, true},
                                       {"WRITE", "writes", k_slow_data_us, false},
                                       {"GETATTR", "questions for attributes", k_slow_attributes_us, true}}};

std::string period_of(const Reading& reading, const Measured& one) {
  using std::chrono::microseconds;
  if (reading.sampled)
    return fmt::format("in {}", format_duration(microseconds(*reading.sampled).count()));
  constexpr std::chrono::seconds k_hour{3600}, k_day{86'400};
  const auto age = one.statistics.age;
  if (age >= 2 * k_day)
    return fmt::format("in the {} since it was mounted", count_of(static_cast<std::size_t>(age / k_day), "day"));
  if (age >= 2 * k_hour)
    return fmt::format("in the {} since it was mounted", count_of(static_cast<std::size_t>(age / k_hour), "hour"));
  return fmt::format("since it was mounted {} ago",
                     format_duration(std::chrono::duration_cast<microseconds>(age).count()));
}

Diagnosis about(const Measured& one, Severity severity, std::string code, std::string message, std::string hint) {
  return {severity, std::move(code), one.statistics.target, std::move(message), std::move(hint), ""};
}

/// Without parts of milliseconds where there are ten of them.
std::string time_of(std::int64_t microseconds) {
  const bool whole = microseconds >= 10'000 && microseconds < 1'000'000;
  return whole ? fmt::format("{} ms", microseconds / 1000) : format_duration(microseconds);
}

/// "reads take 14 ms: 13 ms of them the network and the server, 1.0 ms on this host (mean of 1234 ...)"
std::string parts_of(const Kind& kind, const Mean& mean, std::uint64_t count, const std::string& period) {
  return fmt::format("{} take {}: {} of them the network and the server, {} on this host (mean of {} {})", kind.words,
                     time_of(mean.rtt_us + mean.wait_us), time_of(mean.rtt_us), time_of(mean.wait_us), count, period);
}

/// SF701, SF702: each at most once for a mount, by what is slow first.
Diagnoses diagnose_times(const Measured& one, const std::string& period, const Pings& pings) {
  Diagnoses found;
  const auto is_said = [&](std::string_view code) {
    return std::ranges::find(found, code, &Diagnosis::code) != found.end();
  };
  for (const auto& kind : k_kinds) {
    const auto& operation = one.statistics.operation(kind.name);
    const auto mean = mean_of(operation);
    if (!mean || operation.count < k_least_requests)
      continue;
    auto text = parts_of(kind, *mean, operation.count, period);
    if (mean->rtt_us >= kind.slow_us && !is_said("SF701")) {
      const auto ping = pings.find(one.address);
      std::string hint = fmt::format("`sharefs probe {}` shows what the network alone takes",
                                     one.statistics.source.substr(0, one.statistics.source.rfind(":/")));
      if (ping != pings.end() && 2 * ping->second.count() < mean->rtt_us) {
        text += fmt::format("; an empty request takes {} now, so the time passes in the server",
                            time_of(ping->second.count()));
        hint = "on the server: `iostat -x 1` for its disks, `cat /proc/fs/nfsd/threads` for its threads";
      } else if (ping != pings.end()) {
        text += fmt::format("; an empty request takes {} now", time_of(ping->second.count()));
        hint = "look at the network between the two: `ping`, `mtr`, and the interfaces' errors in `ip -s link`";
      }
      found.push_back(about(one, Severity::warning, "SF701", text, hint));
    } else if (kind.waits && mean->wait_us >= kind.slow_us && !is_said("SF702")) {
      found.push_back(about(one, Severity::warning, "SF702", text,
                            one.statistics.connections > 1
                                ? "its connections are full: what else of this host uses the share?"
                                : "one connection carries it all: `profile: safe` takes `nconnect=4`, once all mounts "
                                  "of this server are unmounted"));
    }
  }
  return found;
}

/// SF703, SF704
Diagnoses diagnose_losses(const Measured& one, const std::string& period) {
  std::uint64_t count = 0, again = 0, timeouts = 0;
  for (const auto& [name, operation] : one.statistics.operations) {
    count += operation.count;
    again += operation.transmissions > operation.count ? operation.transmissions - operation.count : 0;
    timeouts += operation.timeouts;
  }
  Diagnoses found;
  const auto too_many = [](std::uint64_t some, std::uint64_t all) {
    return some >= k_least_lost && some > all / k_lost_of;
  };
  std::vector<std::string> parts; // one request may be sent again many times, so these are no parts of `count`
  if (again > 0)
    parts.push_back(fmt::format("sent again {} times", again));
  if (timeouts > 0)
    parts.push_back(fmt::format("without a reply for as long as `timeo` and `retrans` allow {} times", timeouts));
  if (too_many(again, count) || too_many(timeouts, count))
    found.push_back(about(one, Severity::warning, "SF703",
                          fmt::format("{} requests, {}, {}", count, join(parts, ", "), period),
                          "packets or connections are lost: see `ip -s link` and `ss -ti` here and on the server"));
  if (const auto& seen = one.statistics; too_many(seen.bad_xids, seen.replies))
    found.push_back(about(one, Severity::warning, "SF704",
                          fmt::format("{} of {} replies answer no request, {}", seen.bad_xids, seen.replies, period),
                          "replies come after their requests were given up, or a firewall or balancer mixes them"));
  return found;
}

/// SF705, SF707
Diagnoses diagnose_options(const Measured& one) {
  Diagnoses found;
  std::vector<std::string> small, odd;
  for (const auto* name : {"rsize", "wsize"}) {
    const auto text = one.statistics.option(name);
    std::uint64_t size = 0;
    std::from_chars(text.data(), text.data() + text.size(), size);
    if (size > 0 && size < k_usual_size)
      small.push_back(fmt::format("{}={}", name, size));
  }
  if (!small.empty())
    found.push_back(about(one, Severity::info, "SF705", // the kernel does not tell who has chosen it
                          fmt::format("{}: large files are cut into small requests", join(small, ", ")),
                          "if its options say so, take that away; if they do not, the server offers no more, since it "
                          "has little memory"));
  if (one.statistics.option("noac") == "yes")
    odd.emplace_back("`noac`, by which every look at a file asks the server, and every write waits for it");
  else if (one.statistics.option("sync") == "yes")
    odd.emplace_back("`sync`, by which every write waits for the server");
  if (one.statistics.option("soft") == "yes")
    odd.emplace_back("`soft`, by which programs get errors, and may lose what they wrote, when the server is slow");
  if (!odd.empty())
    found.push_back(about(one, Severity::info, "SF707", "mounted with " + join(odd, "; and with "),
                          "leave it out, unless it is meant"));
  return found;
}

/// Words of the first list that are not in the second.
std::vector<std::string> only_in(const std::string& list, const std::string& other) {
  const auto there = split(other, ',');
  std::vector<std::string> words;
  for (const auto& word : split(list, ','))
    if (std::ranges::find(there, word) == there.end())
      words.push_back(word);
  return words;
}

/// SF706: one export, two superblocks.
Diagnoses diagnose_duplicates(const std::vector<Measured>& mounts) {
  std::map<std::string, const Measured*> first; // by source
  Diagnoses found;
  for (const auto& one : mounts) {
    const auto [place, is_new] = first.emplace(one.statistics.source, &one);
    if (is_new)
      continue;
    const auto& other = *place->second;
    const auto here = only_in(one.statistics.options, other.statistics.options);
    const auto there = only_in(other.statistics.options, one.statistics.options);
    found.push_back(about(one, Severity::info, "SF706",
                          fmt::format("{} is mounted on {} too, with {} instead of {}: two caches of the same files",
                                      one.statistics.source, other.statistics.target,
                                      there.empty() ? "no other option" : join(there, ","),
                                      here.empty() ? "none" : join(here, ",")),
                          "the same options for both, unless it is meant"));
  }
  return found;
}

} // namespace

std::optional<Mean> mean_of(const Operation& operation) {
  if (operation.count == 0)
    return std::nullopt;
  constexpr std::uint64_t k_most = 1ULL << 50U; // a damaged counter must not overflow
  const auto mean = [&](std::uint64_t milliseconds) {
    return static_cast<std::int64_t>(std::min(milliseconds, k_most) * 1000 / operation.count);
  };
  const auto rtt = mean(operation.rtt_ms);
  return Mean{rtt, std::max<std::int64_t>(mean(operation.execute_ms) - rtt, 0)};
}

Diagnoses diagnose(const Reading& reading, const Pings& pings) {
  Diagnoses found;
  const auto append = [&found](const Diagnoses& more) { found.insert(found.end(), more.begin(), more.end()); };
  for (const auto& one : reading.mounts) {
    const auto period = period_of(reading, one);
    append(diagnose_times(one, period, pings));
    append(diagnose_losses(one, period));
    append(diagnose_options(one));
  }
  append(diagnose_duplicates(reading.mounts));
  if (reading.nfsd_threads == 1)
    found.push_back({Severity::warning, "SF708", "nfsd",
                     "the NFS server of this host has one thread: each request waits for the one before it",
                     "write `threads=16` to `[nfsd]` in /etc/nfs.conf; at once: `echo 16 >/proc/fs/nfsd/threads`", ""});
  return found;
}

} // namespace sharefs::watch
