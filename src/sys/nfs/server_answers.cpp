// What a child reports, as bytes; and the check of each field, as the child may be in a stranger's hands.
#include "sys/nfs/server_answers.hpp"

#include "base/text.hpp"
#include "sys/net/addresses.hpp"
#include "sys/process/wire.hpp"

#include <algorithm>

namespace sharefs::sys {

template <FieldsOf<Failure> E> auto fields(E& e) {
  return named("fault", e.fault, "error_number", e.error_number);
}
template <FieldsOf<StageAnswer> E> auto fields(E& e) {
  return named("asked", e.asked, "failure", e.failure, "round_trip", e.round_trip);
}
template <FieldsOf<ExportListing> E> auto fields(E& e) {
  return named("directory", e.directory, "clients", e.clients);
}
template <FieldsOf<AddressAnswers> E> auto fields(E& e) {
  return std::tuple_cat(std::apply([](auto&... stage) { return std::tuple_cat(named("stage", stage)...); }, e.stages),
                        named("address", e.address, "services", e.services, "nfs_port", e.nfs_port, "mountd_port",
                              e.mountd_port, "exports", e.exports, "access", e.access));
}
template <FieldsOf<ServerAnswers> E> auto fields(E& e) {
  return named("resolve", e.resolve, "addresses", e.addresses, "asking", e.asking);
}

namespace {

constexpr std::chrono::microseconds k_longest = std::chrono::hours(24);
constexpr std::size_t k_max_address = 128; ///< an IPv6 address with the name of its interface

bool is_name(const std::string& text, std::size_t at_most) {
  return text.size() <= at_most && std::ranges::none_of(text, is_control);
}

bool is_failure(const Failure& failure) {
  return failure.fault <= Fault::only_kerberos;
}

bool is_stage(const StageAnswer& answer) {
  return is_failure(answer.failure) && answer.round_trip.count() >= 0 && answer.round_trip <= k_longest;
}

bool is_sound(const AddressAnswers& answers) {
  std::size_t entries = answers.exports.size();
  const auto is_listing = [&entries](const ExportListing& one) {
    entries += one.clients.size();
    return is_name(one.directory, k_max_name) &&
           std::ranges::all_of(one.clients, [](const std::string& client) { return is_name(client, k_max_name); });
  };
  return is_name(answers.address, k_max_address) && std::ranges::all_of(answers.stages, is_stage) &&
         answers.services <= k_max_entries && std::ranges::all_of(answers.exports, is_listing) &&
         entries <= k_max_entries && std::ranges::all_of(answers.access, is_failure);
}

} // namespace

std::vector<std::string> access_paths(const NfsProbeRequest& request, const std::vector<ExportListing>& exports) {
  if (!request.paths.empty())
    return request.paths;
  std::vector<std::string> paths;
  for (const ExportListing& one : exports)
    paths.push_back(one.directory);
  return paths;
}

std::size_t usefulness(const NfsProbeRequest& request, const AddressAnswers& answers) {
  if (!answers.offers_nfs())
    return answers.is_ok(ProbeStage::connect) ? 1 : 0;
  const auto may_mount = [](const Failure& one) {
    return one.fault == Fault::none || one.fault == Fault::only_kerberos;
  };
  const auto allowed = static_cast<std::size_t>(std::ranges::count_if(answers.access, may_mount));
  const bool all = allowed > 0 && allowed == access_paths(request, answers.exports).size();
  return all || !request.want_access ? k_all_allowed : 2 + allowed;
}

std::string encode(const ServerAnswers& answers) {
  return WireWriter().put(answers).framed();
}

std::optional<ServerAnswers> decode_last(std::string_view bytes) {
  std::string_view last;
  for (WireReader frames(bytes); !frames.at_end();) {
    const std::string_view frame = frames.text();
    if (!frames.ok())
      break; // the child ended in the middle of it
    last = frame;
  }
  WireReader reader(last);
  auto answers = reader.get<ServerAnswers>();
  const std::size_t count = answers.addresses.size();
  if (!reader.ok() || !reader.at_end() || !is_stage(answers.resolve) || count > k_max_addresses ||
      answers.asking > count - (count == 0 ? 0 : 1) || !std::ranges::all_of(answers.addresses, is_sound))
    return std::nullopt;
  return answers;
}

} // namespace sharefs::sys
