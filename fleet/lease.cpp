#include "fleet/lease.hpp"

#include "base/json.hpp"
#include "base/json_fields.hpp"
#include "base/text.hpp"
#include "base/try.hpp"

#include <fmt/format.h>

namespace sharefs::fleet {

namespace {

constexpr std::size_t k_limit = 65536;

std::optional<ClusterLease> parse_lease(const std::string& text) {
  const auto json = read_json<nlohmann::ordered_json>(text, {.bytes = k_limit});
  ClusterLease lease;
  return json && value_from_json(*json, lease) ? std::optional(lease) : std::nullopt;
}

} // namespace

Result<void> take_lease(const sys::Files& files, const std::string& path, const ClusterLease& lease) {
  TRY_ASSIGN(const auto before, files.read_if_exists(path, k_limit));
  const auto held = before ? parse_lease(*before) : std::nullopt;
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
  const auto held = text ? parse_lease(*text) : std::nullopt;
  return held && held->run == run ? files.remove(path) : Result<void>();
}

} // namespace sharefs::fleet
