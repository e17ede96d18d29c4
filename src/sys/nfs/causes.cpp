// Describes a server's answers in words. causes.txt has the usual causes of a failed stage and their cures.
#include "sys/nfs/server_answers.hpp"

#include "base/text.hpp"

#include <array>
#include <cerrno>
#include <fmt/format.h>

namespace sharefs::sys {

extern const char k_causes[]; // causes.txt

namespace {

std::string describe_fault(const ServerAnswer& answer) {
  static constexpr std::array k_words{"",
                                      "",
                                      "no host of this name is known",
                                      "the name service failed: ",
                                      "",
                                      "no answer",
                                      "the server closed the connection",
                                      "not offered",
                                      "the server refuses this host's calls",
                                      "the server sent a reply that cannot be read",
                                      "not registered with the portmapper",
                                      "nothing is exported",
                                      "this host could not ask: ",
                                      "only Kerberos (krb5)",
                                      "NFS 4 refers to another server (referral)",
                                      ""};
  if (answer.fault == Fault::connection && answer.error_number == ETIMEDOUT)
    return "no answer";
  return name_in(k_words, answer.fault) + (answer.error_number == 0 ? "" : errno_text(answer.error_number));
}

/// Finds the usual cause of a failure and its cure.
std::array<std::string, 2> find_cause(ProbeStage stage, const std::string& what) {
  static const auto k_rows = split_lines(k_causes);
  const auto beginning = what.substr(0, what.find(':'));
  for (const auto& key : {fmt::format("{}: {}", to_string(stage), what),
                          fmt::format("{}: {}", to_string(stage), beginning), "*: " + beginning, std::string("*")})
    if (const auto row = std::ranges::find(k_rows, key); k_rows.end() - row > 2)
      return {std::string(trim(row[1])), std::string(trim(row[2]))};
  return {};
}

} // namespace

std::string describe(const ServerAnswer& answer) {
  auto words = describe_fault(answer);
  if (words == "no answer")
    words += " within " + format_duration(answer.round_trip.count());
  return words;
}

StageResult failed_stage(ProbeStage stage, const ServerAnswer& answer, std::uint16_t port) {
  const bool unconnected = answer.fault == Fault::connection;
  auto [cause, hint] = find_cause(stage, (unconnected ? "connection: " : "") + describe_fault(answer));
  return {stage,
          StageOutcome::failed,
          answer.round_trip,
          (unconnected ? fmt::format("TCP port {}: ", port) : "") + describe(answer),
          std::move(cause),
          std::move(hint)};
}

const char* to_string(ProbeStage stage) {
  static constexpr std::array k_names{"resolve", "connect", "portmapper", "mountd", "nfs3",
                                      "nfs4",    "exports", "access",     "unknown"};
  return name_in(k_names, stage);
}

const char* to_string(StageOutcome outcome) {
  static constexpr std::array k_names{"ok", "absent", "failed", "skipped", "unknown"};
  return name_in(k_names, outcome);
}

} // namespace sharefs::sys
