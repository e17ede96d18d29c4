#pragma once
// Is a mount slow, and where does the time go? By what mountstats counts: the round trip is the network and the server,
// the rest of a request's time is spent on this host.
#include "base/diagnosis.hpp"
#include "sys/mounts/mountstats.hpp"
#include "sys/system.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::watch {

using sys::MountStatistics;
using sys::Operation;

/// The mounts of one superblock, which the kernel counts together.
struct Measured {
  MountStatistics statistics;
  std::vector<std::string> elsewhere; ///< further mount points
  std::string address;                ///< of the server, as the kernel has it
  friend bool operator==(const Measured&, const Measured&) = default;
};

struct Reading {
  std::vector<Measured> mounts;                     ///< by target
  std::optional<int> nfsd_threads;                  ///< nullopt: this host is no server, or only root may know
  std::optional<std::chrono::seconds> sampled = {}; ///< nullopt: since each was mounted
};

/// Reads /proc only, never a mount. Errors: those of the files, and what cannot be parsed.
Result<Reading> probe(sys::System& system);
/// What has happened between two readings.
Reading between(const Reading& before, Reading now, std::chrono::seconds sampled);

/// How long a question that needs no disk takes to each server, by address: the network's part.
using Pings = std::map<std::string, std::chrono::microseconds>;

/// SF701 to SF708. Means of fewer than k_least_requests are not judged.
Diagnoses diagnose(const Reading& reading, const Pings& pings);
inline constexpr std::uint64_t k_least_requests = 50;

/// The mean of a request, in microseconds.
struct Mean {
  std::int64_t rtt_us = 0;  ///< network and server
  std::int64_t wait_us = 0; ///< on this host
  friend bool operator==(const Mean&, const Mean&) = default;
};
/// nullopt: there was no such request.
std::optional<Mean> mean_of(const Operation& operation);

} // namespace sharefs::watch
