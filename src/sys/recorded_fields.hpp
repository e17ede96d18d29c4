#pragma once
// Values as JSON in a recording: a struct is an array of its fields, which `wire_fields` or `recorded_fields` gives, in
// their order. Reading is strict, as a recording comes from a stranger: every number has its range, every enum its
// last.
#include "base/diagnosis.hpp"
#include "sys/fs/read_entry.hpp"
#include "sys/process/process.hpp"
#include "sys/system.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

namespace sharefs {

constexpr ErrorCode last_of(ErrorCode) {
  return ErrorCode::interrupted;
}
constexpr Severity last_of(Severity) {
  return Severity::error;
}
template <sys::WireOf<Diagnosis> D> auto recorded_fields(D& d) {
  return std::tie(d.severity, d.code, d.subject, d.message, d.hint, d.fix);
}

namespace sys {

constexpr EntryKind last_of(EntryKind) {
  return EntryKind::unknown;
}
constexpr LockScope last_of(LockScope) {
  return LockScope::same_name;
}
constexpr Links last_of(Links) {
  return Links::none;
}
constexpr ProbeStage last_of(ProbeStage) {
  return ProbeStage::access;
}
constexpr StageOutcome last_of(StageOutcome) {
  return StageOutcome::skipped;
}

template <WireOf<Identity> I> auto recorded_fields(I& i) {
  return std::tie(i.hostname, i.boot_id, i.uid, i.gid, i.user, i.home, i.pid, i.systemd, i.addresses);
}
template <WireOf<MountEntry> M> auto recorded_fields(M& m) {
  return std::tie(m.id, m.parent, m.major, m.minor, m.root, m.target, m.deleted, m.options, m.fs_type, m.source,
                  m.super_options);
}
template <WireOf<EntryQuery> Q> auto recorded_fields(Q& q) {
  return std::tie(q.path, q.follow, q.list, q.read_bytes, q.space, q.access, q.write_test, q.automount, q.links,
                  q.guarded);
}
template <WireOf<Entry> E> auto recorded_fields(E& e) {
  return std::tuple_cat(wire_fields(e), std::tie(e.mount, e.fs_type, e.shared, e.lock_scope));
}
template <WireOf<Completed> C> auto recorded_fields(C& c) {
  return std::tie(c.exit_code, c.timed_out, c.unreaped, c.out, c.err, c.took);
}
template <WireOf<StageResult> S> auto recorded_fields(S& s) {
  return std::tie(s.stage, s.outcome, s.round_trip, s.detail, s.cause, s.hint);
}
template <WireOf<ExportListing> L> auto recorded_fields(L& l) {
  return std::tie(l.directory, l.clients);
}
template <WireOf<ExportAccess> A> auto recorded_fields(A& a) {
  return std::tie(a.directory, a.allowed, a.reason, a.address);
}
template <WireOf<NfsProbe> P> auto recorded_fields(P& p) {
  return std::tie(p.host, p.address, p.stages, p.v3, p.v4, p.v3_unknown, p.v4_unknown, p.exports, p.access, p.took);
}

nlohmann::json text_to_recorded(std::string_view text);
bool text_from_recorded(const nlohmann::json& json, std::string& text);
/// A whole number between the two. (A time of a stranger must not overflow where it is multiplied.)
bool number_from_recorded(const nlohmann::json& json, std::int64_t least, std::int64_t most, std::int64_t& value);

template <class T> auto fields_of(T& value) {
  if constexpr (requires { std::tuple_size<T>::value; })
    return std::apply([](auto&... field) { return std::tie(field...); }, value);
  else if constexpr (requires { recorded_fields(value); })
    return recorded_fields(value);
  else
    return wire_fields(value);
}

template <class T> nlohmann::json to_recorded(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return static_cast<unsigned>(value);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return value;
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    return text_to_recorded(value);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? nlohmann::json::array({to_recorded(*value)}) : nlohmann::json();
  } else if constexpr (requires { value.begin(); }) {
    auto json = nlohmann::json::array();
    for (const auto& one : value)
      json.push_back(to_recorded(one));
    return json;
  } else if constexpr (requires { value.count(); }) {
    return value.count();
  } else {
    auto json = nlohmann::json::array();
    std::apply([&json](const auto&... field) { (json.push_back(to_recorded(field)), ...); }, fields_of(value));
    return json;
  }
}

template <class T> bool from_recorded(const nlohmann::json& json, T& value) {
  if constexpr (std::same_as<T, bool>) {
    value = json.is_boolean() && json.get<bool>();
    return json.is_boolean();
  } else if constexpr (std::same_as<T, std::uint64_t>) {
    if (!json.is_number_unsigned())
      return false;
    value = json.get<std::uint64_t>();
    return true;
  } else if constexpr (WireNumber<T>) {
    std::int64_t number = 0;
    if constexpr (std::is_enum_v<T>) {
      if (!number_from_recorded(json, 0, static_cast<std::int64_t>(last_of(T{})), number))
        return false;
    } else if (!number_from_recorded(json, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), number)) {
      return false;
    }
    value = static_cast<T>(number);
    return true;
  } else if constexpr (std::same_as<T, std::string>) {
    return text_from_recorded(json, value);
  } else if constexpr (requires { value.has_value(); }) {
    if (json.is_null())
      return true;
    return json.is_array() && json.size() == 1 && from_recorded(json[0], value.emplace());
  } else if constexpr (requires { value.emplace_back(); }) {
    if (!json.is_array())
      return false;
    value.reserve(json.size());
    for (const auto& one : json)
      if (!from_recorded(one, value.emplace_back()))
        return false;
    return true;
  } else if constexpr (requires { value.count(); }) {
    constexpr std::chrono::years k_most(100);
    const auto most = std::chrono::duration_cast<T>(k_most).count();
    std::int64_t number = 0;
    if (!number_from_recorded(json, -most, most, number))
      return false;
    value = T(number);
    return true;
  } else {
    auto fields = fields_of(value);
    if (!json.is_array() || json.size() != std::tuple_size_v<decltype(fields)>)
      return false;
    std::size_t index = 0;
    return std::apply([&](auto&... field) { return (from_recorded(json[index++], field) && ...); }, fields);
  }
}

} // namespace sys
} // namespace sharefs
