#include "tree/tree.hpp"

#include "base/text.hpp"
#include "sys/process/interrupt.hpp"
#include "tree/job.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <sys/resource.h>

namespace sharefs::tree {

Result<bool> exists(const Place& place, const Options& options) {
  return watched(place.path, options, {}, [&](const sys::ProgressCounters&) -> Result<bool> {
    return find(place, true).map([](const Found& found) { return static_cast<bool>(found.fd); });
  });
}

void prepare_child() {
  ::umask(0); // modes are set exactly as in the original
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

bool Watch::gives_up() {
  constexpr std::chrono::milliseconds k_interval{100};
  const auto now = sys::Clock::now();
  if (now >= m_reported + k_interval)
    report();
  if (const auto counters = m_counters.all(); counters != m_last) {
    m_last = counters;
    m_end = sys::deadline_in(m_options.deadline);
  }
  m_stalled = now >= m_end;
  return m_stalled || sys::interrupted();
}

void Watch::report() {
  m_reported = sys::Clock::now();
  if (m_progress)
    m_progress({m_counters.get(k_files), m_counters.get(k_bytes), m_options.total_files, m_options.total_bytes,
                std::chrono::duration_cast<std::chrono::milliseconds>(m_reported - m_begin)});
}

Error Watch::explain(Error error, const std::string& path) const {
  if (m_stalled)
    return {ErrorCode::timeout,
            path + ": no progress for " + format_duration(m_options.deadline / std::chrono::microseconds(1)),
            "it may lie on a dead mount: run `sharefs status`",
            {}};
  if (error.code == ErrorCode::timeout || error.code == ErrorCode::interrupted)
    error.message = path + ": " + error.message;
  return error;
}

std::string Progress::text() const {
  const auto seconds = std::max(0.001, static_cast<double>(took.count()) / 1000.0);
  const auto left = [&](double done) -> std::string {
    const auto rest = done > 0.01 && seconds > 2 ? static_cast<std::int64_t>(seconds * (1 - done) / done) : 0;
    return rest <= 0
               ? ""
               : fmt::format(", {} left", rest < 120 ? fmt::format("{} s", rest) : fmt::format("{} min", rest / 60));
  };
  const auto part = [](std::uint64_t done, std::uint64_t all) {
    return all == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(all));
  };
  auto size = format_bytes(bytes);
  if (const auto all = format_bytes(total_bytes); total_bytes > 0) {
    const auto unit = all.substr(all.rfind(' '));
    size = (size.ends_with(unit) ? size.substr(0, size.size() - unit.size()) : size) + "/" + all;
  }
  if (total_files == 0 && total_bytes > 0) // one large file
    return fmt::format("{}, {}/s{}", size,
                       format_bytes(static_cast<std::uint64_t>(static_cast<double>(bytes) / seconds)),
                       left(part(bytes, total_bytes)));
  const auto all_files = std::max(files, total_files); // `files` may be larger: a file that changed is copied twice
  auto text = fmt::format("{}, {}, {:.0f} files/s",
                          total_files == 0 ? count_of(files, "file") : fmt::format("{}/{}", files, all_files), size,
                          static_cast<double>(files) / seconds);
  if (total_files > 0)
    text += left(std::min(part(files, total_files), part(bytes, total_bytes)));
  return text;
}

} // namespace sharefs::tree
