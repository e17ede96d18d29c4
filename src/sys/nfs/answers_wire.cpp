// What a child reports, as bytes; and the check of each field, as the child may be in a stranger's hands.
#include "base/text.hpp"
#include "sys/nfs/ask_server.hpp"
#include "sys/nfs/net.hpp"
#include "sys/process/wire.hpp"

#include <algorithm>

namespace sharefs::sys {

template <WireOf<Failure> E> auto wire_fields(E& e) {
  return std::tie(e.fault, e.error_number);
}
template <WireOf<MountReply> E> auto wire_fields(E& e) {
  return std::tie(e.status, e.only_kerberos);
}
template <WireOf<StageAnswer> E> auto wire_fields(E& e) {
  return std::tie(e.asked, e.failure, e.round_trip);
}
template <WireOf<AccessAnswer> E> auto wire_fields(E& e) {
  return std::tie(e.failure, e.reply);
}
template <WireOf<AddressAnswer> E> auto wire_fields(E& e) {
  return std::tie(e.address, e.failure, e.access);
}
template <WireOf<ExportListing> E> auto wire_fields(E& e) {
  return std::tie(e.directory, e.clients);
}
template <WireOf<ServerAnswers> E> auto wire_fields(E& e) {
  return std::tuple_cat(
      std::apply([](auto&... stage) { return std::tie(stage...); }, e.stages),
      std::tie(e.addresses, e.used, e.tried, e.services, e.nfs_port, e.mountd_port, e.exports, e.access));
}

namespace {

constexpr std::chrono::microseconds k_longest = std::chrono::hours(24);
constexpr std::size_t k_max_address = 128; ///< an IPv6 address with the name of its interface

bool is_name(const std::string& text, std::size_t at_most) {
  return text.size() <= at_most && std::none_of(text.begin(), text.end(), is_control);
}

bool is_sound(const Failure& failure) {
  return failure.fault <= Fault::not_asked && failure.error_number >= -4095 && failure.error_number <= 4095;
}

bool is_sound(const ServerAnswers& answers) {
  const auto stage = [](const StageAnswer& one) {
    return is_sound(one.failure) && one.round_trip.count() >= 0 && one.round_trip <= k_longest;
  };
  const auto address = [](const std::string& one) { return is_name(one, k_max_address); };
  const auto client = [](const std::string& one) { return is_name(one, k_max_name); };
  std::size_t entries = answers.exports.size();
  const auto listing = [&](const ExportListing& one) {
    entries += one.clients.size();
    return is_name(one.directory, k_max_name) && std::all_of(one.clients.begin(), one.clients.end(), client);
  };
  const auto access = [](const AccessAnswer& one) { return is_sound(one.failure); };
  const auto tried = [&](const AddressAnswer& one) {
    return one.address < answers.addresses.size() && is_sound(one.failure) &&
           std::all_of(one.access.begin(), one.access.end(), access);
  };
  return std::all_of(answers.stages.begin(), answers.stages.end(), stage) &&
         answers.addresses.size() <= k_max_addresses &&
         std::all_of(answers.addresses.begin(), answers.addresses.end(), address) &&
         (answers.used == 0 || answers.used < answers.addresses.size()) && answers.tried.size() <= k_max_addresses &&
         std::all_of(answers.tried.begin(), answers.tried.end(), tried) && answers.services <= k_max_entries &&
         std::all_of(answers.exports.begin(), answers.exports.end(), listing) && entries <= k_max_entries &&
         std::all_of(answers.access.begin(), answers.access.end(), access);
}

} // namespace

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
  if (!reader.ok() || !reader.at_end() || !is_sound(answers))
    return std::nullopt;
  return answers;
}

} // namespace sharefs::sys
