#include "fleet/lease.hpp"

#include "base/json_fields.hpp"
#include "base/text.hpp"
#include "base/try.hpp"

#include <fmt/format.h>

namespace sharefs::fleet {

namespace {

constexpr std::size_t k_limit = 65536;

} // namespace

Result<void> take_lease(const sys::Files& files, const std::string& path, const ClusterLease& lease) {
  TRY_ASSIGN(const auto before, files.read_if_exists(path, k_limit));
  const auto held = before ? from_json<ClusterLease>(*before, k_limit) : std::nullopt;
  if (held && held->who != lease.who && held->until > lease.since)
    return fail(ErrorCode::busy,
                fmt::format("{} has been changing the cluster for {} (run {})", to_utf8(held->who),
                            format_duration((lease.since - held->since) * 1'000'000), to_utf8(held->run)),
                fmt::format("wait for its end; it is over in {} at the latest",
                            format_duration((held->until - lease.since) * 1'000'000)));
  const auto text = json_of(lease, JsonTexts::exact).dump() + "\n";
  constexpr mode_t k_mode = 0600;
  auto written = files.write_if(path, before, text, k_mode);
  if (!written && written.error().code == ErrorCode::conflict)
    return fail(ErrorCode::busy, "somebody else has begun to change the cluster at this moment", "try again");
  return written;
}

Result<void> give_back_lease(const sys::Files& files, const std::string& path, const std::string& run) {
  TRY_ASSIGN(const auto text, files.read_if_exists(path, k_limit));
  const auto held = text ? from_json<ClusterLease>(*text, k_limit) : std::nullopt;
  return held && held->run == run ? files.remove(path) : Result<void>();
}

} // namespace sharefs::fleet
