#pragma once
// How fast the mounts are: what `doctor --seconds` shows.
#include "cli/context.hpp"
#include "ui/table.hpp"
#include "watch/performance.hpp"

#include <chrono>

namespace sharefs::cli {

/// Since the mounts were made, or for so long from now on.
Result<watch::Reading> measure(Context& context, std::chrono::seconds seconds);
/// How long the servers that were asked took for a question without a file.
void add_pings(const sys::NfsProbe& server, watch::Pings& pings);

ui::Table performance_table(const watch::Reading& reading);
/// [{target, source, elsewhere, seconds, connections, replies, bad_xids, read, write, getattr}], each of the three with
/// {count, rtt_us, wait_us, bytes, sent_again, timeouts}.
nlohmann::ordered_json to_json(const watch::Reading& reading);

} // namespace sharefs::cli
