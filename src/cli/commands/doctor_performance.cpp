#include "cli/commands/doctor_performance.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <thread>

namespace sharefs::cli {

namespace {

using Json = nlohmann::ordered_json;

std::uint64_t bytes_of(std::string_view name, const watch::Operation& operation) {
  return name == "READ" ? operation.received_bytes : name == "WRITE" ? operation.sent_bytes : 0;
}

/// "1.2 ms + 0.1 ms": the round trip, and what this host adds.
ui::Cell times_of(const watch::Operation& operation) {
  const auto mean = watch::mean_of(operation);
  if (!mean)
    return {"-"};
  return {fmt::format("{} + {}", format_duration(mean->rtt_us), format_duration(mean->wait_us))};
}

ui::Cell rate_of(std::uint64_t bytes, std::chrono::seconds time) {
  const auto seconds = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 1));
  return {bytes == 0 ? "-" : format_bytes(bytes / seconds) + "/s"};
}

Json operation_json(std::string_view name, const watch::Operation& operation) {
  const auto mean = watch::mean_of(operation);
  return {{"count", operation.count},
          {"rtt_us", mean ? Json(mean->rtt_us) : Json(nullptr)},
          {"wait_us", mean ? Json(mean->wait_us) : Json(nullptr)},
          {"bytes", bytes_of(name, operation)},
          {"sent_again", operation.transmissions > operation.count ? operation.transmissions - operation.count : 0},
          {"timeouts", operation.timeouts}};
}

} // namespace

Result<watch::Reading> measure(Context& context, std::chrono::seconds seconds) {
  auto first = watch::probe(context.system);
  if (!first || seconds.count() == 0 || first->mounts.empty())
    return first;
  const ui::Console::Progress progress(context.console, fmt::format("measuring for {} s", seconds.count()));
  std::this_thread::sleep_for(seconds);
  return watch::probe(context.system).map([&](watch::Reading&& now) {
    return watch::between(*first, std::move(now), seconds);
  });
}

void add_pings(const sys::NfsProbe& server, watch::Pings& pings) {
  for (const auto& stage : server.stages) // NULL: nfsd answers it without a look at a file
    if ((stage.stage == sys::ProbeStage::nfs4 || stage.stage == sys::ProbeStage::nfs3) &&
        stage.outcome == sys::StageOutcome::ok && stage.round_trip.count() > 0)
      pings.insert_or_assign(server.address, stage.round_trip);
}

ui::Table performance_table(const watch::Reading& reading) {
  ui::Table table({{"TARGET"},
                   {"READS"},
                   {"RATE", true},
                   {"WRITES"},
                   {"RATE", true},
                   {"ATTRIBUTES"},
                   {"CONNECTIONS", true},
                   {"SENT AGAIN", true}});
  for (const auto& one : reading.mounts) {
    const auto& seen = one.statistics;
    std::uint64_t again = 0;
    for (const auto& [name, operation] : seen.operations)
      again += operation.transmissions > operation.count ? operation.transmissions - operation.count : 0;
    const auto& read = seen.operation("READ");
    const auto& write = seen.operation("WRITE");
    table.add({{seen.target},
               times_of(read),
               rate_of(bytes_of("READ", read), seen.age),
               times_of(write),
               rate_of(bytes_of("WRITE", write), seen.age),
               times_of(seen.operation("GETATTR")),
               {std::to_string(seen.connections)},
               {std::to_string(again)}});
  }
  return table;
}

Json to_json(const watch::Reading& reading) {
  auto json = Json::array();
  for (const auto& one : reading.mounts) {
    const auto& seen = one.statistics;
    auto elsewhere = Json::array();
    for (const auto& target : one.elsewhere)
      elsewhere.push_back(to_utf8(target));
    json.push_back({{"target", to_utf8(seen.target)},
                    {"source", to_utf8(seen.source)},
                    {"elsewhere", std::move(elsewhere)},
                    {"seconds", seen.age.count()},
                    {"connections", seen.connections},
                    {"replies", seen.replies},
                    {"bad_xids", seen.bad_xids}});
    for (const auto& [key, name] : {std::pair{"read", "READ"}, {"write", "WRITE"}, {"getattr", "GETATTR"}})
      json.back()[key] = operation_json(name, seen.operation(name));
  }
  return json;
}

} // namespace sharefs::cli
