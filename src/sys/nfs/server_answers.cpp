// What a child reports, as bytes; and the check of each field, as the child may be in a stranger's hands.
#include "sys/nfs/server_answers.hpp"

#include "base/text.hpp"
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
                        named("mountd_port", e.mountd_port, "exports", e.exports, "access", e.access));
}

namespace {

bool is_name(const std::string& text) {
  return text.size() <= k_max_name && std::ranges::none_of(text, is_control);
}

bool is_failure(const Failure& failure) {
  return failure.fault <= Fault::status;
}

bool is_sound(const AddressAnswers& answers) {
  std::size_t entries = answers.exports.size();
  const auto is_stage = [](const StageAnswer& one) {
    return is_failure(one.failure) && one.round_trip.count() >= 0 && one.round_trip <= std::chrono::hours(24);
  };
  const auto is_listing = [&entries](const ExportListing& one) {
    entries += one.clients.size();
    return is_name(one.directory) && std::ranges::all_of(one.clients, is_name);
  };
  return std::ranges::all_of(answers.stages, is_stage) && std::ranges::all_of(answers.exports, is_listing) &&
         entries <= k_max_entries && std::ranges::all_of(answers.access, is_failure);
}

} // namespace

std::string encode(const AddressAnswers& answers) {
  return WireWriter().put(answers).framed();
}

std::optional<AddressAnswers> decode_last(std::string_view bytes) {
  std::string_view last;
  for (WireReader frames(bytes); !frames.at_end();) {
    const std::string_view frame = frames.text();
    if (!frames.ok())
      break; // the child ended in the middle of it
    last = frame;
  }
  WireReader reader(last);
  auto answers = reader.get<AddressAnswers>();
  return reader.ok() && reader.at_end() && is_sound(answers) ? std::optional(std::move(answers)) : std::nullopt;
}

} // namespace sharefs::sys
