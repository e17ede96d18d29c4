#include "mounts/verify.hpp"

#include "sys/refusal.hpp"

#include "mounts/diagnose.hpp"

#include <cerrno>
#include <fmt/format.h>

namespace sharefs::mounts {

namespace {

bool is_read_only(const MountPoint& point) {
  return value_of(point.options, "access") == "ro";
}

bool is_refused(const sys::Entry& answer) {
  return answer.error_number == EACCES || answer.error_number == EPERM;
}

Diagnosis failure(const MountPoint& point, const sys::Entry& answer) {
  if (answer.error_number == ENOSPC || answer.error_number == EDQUOT)
    return full(point, answer.detail);
  if (answer.error_number == EROFS)
    return read_only(point, answer.detail);
  return about(
      point, Severity::error, "SF228",
      fmt::format("{} failed the test: {}", point.target,
                  answer.detail.empty() ? errno_text(answer.error_number) : answer.detail),
      answer.error_number == ETIMEDOUT
          ? "a server that has just started lets nobody make files in its grace period (up to 90 s): try again "
            "then; else `sharefs status` shows the state of the mount"
          : "run `sharefs status` for the state of the mount");
}

Diagnosis squashed(const MountPoint& point, const sys::Entry& answer) {
  return about(point, Severity::warning, "SF227",
               fmt::format("{} can be read, but root of this host may not write there ({}): the server maps root to "
                           "nobody (root_squash)",
                           point.target, answer.detail),
               "normal for a directory of root; give it a group by `access:` of its export, or test as a user");
}

/// Checks the owner and the time of the file that was written.
void diagnose_written(const MountPoint& point, const sys::TestFile& made, std::uint32_t writer, Diagnoses& found) {
  constexpr std::chrono::milliseconds k_clock_skew{2000}; // tools that compare times accept smaller differences
  if (std::chrono::abs(made.ahead) >= k_clock_skew)
    found.push_back(
        about(point, Severity::warning, "SF236",
              fmt::format("the clock of its server is {} s {} this host's", std::chrono::abs(made.ahead).count() / 1000,
                          made.ahead.count() < 0 ? "behind" : "ahead of"),
              "let both follow one time server (chrony, systemd-timesyncd)"));
  if (made.uid == writer)
    return;
  if (writer == 0)
    found.push_back(about(
        point, Severity::info, "SF237",
        fmt::format("what root of this host writes there belongs to uid {}: the server squashes root", made.uid)));
  else
    found.push_back(about(point, Severity::warning, "SF237",
                          fmt::format("a file that uid {} wrote there belongs to uid {}{}", writer, made.uid,
                                      made.uid == k_nobody ? " (nobody)" : ""),
                          "all_squash or anonuid of the export, or id mapping of NFS 4: the same Domain in "
                          "/etc/idmapd.conf on both sides"));
}

/// Returns SF248 if the server refuses this user although the groups of this host allow it.
std::optional<Diagnosis> diagnose_refusal(sys::System& system, const MountPoint& point, const Result<sys::User>& user) {
  const auto refused = user ? sys::explain_refusal(system, point.target, *user) : std::nullopt;
  if (!refused)
    return std::nullopt;
  return about(point, Severity::warning, "SF248", refused->message, refused->hint);
}

} // namespace

std::optional<sys::User> likely_writer(const sys::Entry& directory) {
  constexpr std::uint32_t k_owner = 0300, k_group = 0030, k_others = 0003; // write and search
  if (directory.uid != 0 && (directory.mode & k_owner) == k_owner)
    return sys::User{fmt::format("uid {}", directory.uid), directory.uid, directory.gid, {directory.gid}, ""};
  if (directory.gid != 0 && (directory.mode & k_group) == k_group)
    return sys::User{fmt::format("gid {}", directory.gid), k_nobody, directory.gid, {directory.gid}, ""};
  if ((directory.mode & k_others) == k_others)
    return sys::User{"nobody", k_nobody, k_nobody, {k_nobody}, ""};
  return std::nullopt;
}

Diagnoses diagnose_refusals(sys::System& system, const Observation& seen, const std::vector<std::string>& users) {
  const auto self = system.identity().uid;
  Diagnoses found;
  for (const auto& name : self == 0 ? users : std::vector{std::to_string(self)}) {
    const auto user = system.user(name);
    for (const auto& state : seen.states)
      if (user && state.wanted && state.mounted() && is_good(state.health) && state.health != Health::autofs_idle)
        if (auto refused = diagnose_refusal(system, state.point, user))
          found.push_back(std::move(*refused));
  }
  return found;
}

Verification verify(sys::System& system, const std::vector<MountPoint>& points, std::chrono::milliseconds deadline) {
  Verification all;
  sys::EntryRequest request{{}, deadline};
  for (const auto& point : points)
    request.queries.push_back(
        {.path = point.target, .list = is_read_only(point), .space = true, .write_test = !is_read_only(point)});
  const auto answers = points.empty() ? std::vector<sys::Entry>() : system.entries(request);
  const auto self = system.identity().uid;
  for (std::size_t index = 0; index < answers.size() && index < points.size(); ++index) {
    const auto& point = points[index];
    auto answer = answers[index];
    Verified verified{point.target, false, false, {}, {}};
    if (answer.space)
      verified.latency = answer.space->latency;
    // Root was refused: the test is made again as a user who may write.
    const bool squashes = request.queries[index].write_test && is_refused(answer) && self == 0 && answer.exists();
    const auto writer = squashes ? likely_writer(answer) : std::nullopt;
    if (writer) {
      const auto second = system.entries({{{.path = point.target, .write_test = true}}, deadline, writer});
      if (second.size() == 1 && !is_refused(second.front())) {
        answer = second.front();
        verified.as = writer;
      }
    }
    const bool refused = squashes && is_refused(answer);
    verified.ok = answer.error_number == 0 || refused;
    verified.written = answer.error_number == 0 && request.queries[index].write_test;
    if (answer.error_number == 0 && answer.made)
      diagnose_written(point, *answer.made, verified.as ? verified.as->uid : self, all.diagnoses);
    if (answer.error_number != 0)
      all.diagnoses.push_back(refused ? squashed(point, answer) : failure(point, answer));
    if (is_refused(answer) && !refused)
      if (auto why = diagnose_refusal(system, point, system.user(std::to_string(self))))
        all.diagnoses.push_back(std::move(*why));
    all.results.push_back(std::move(verified));
  }
  return all;
}

std::string describe(const Verified& verified) {
  if (!verified.ok)
    return "the test failed";
  return fmt::format("{} worked{}", verified.written ? "write, fsync, read back and delete" : "reading",
                     verified.as ? fmt::format(" as {}, as the server squashes root (root_squash)", verified.as->name)
                                 : "");
}

} // namespace sharefs::mounts
