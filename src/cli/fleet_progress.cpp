#include "cli/fleet_progress.hpp"

#include "base/json.hpp"
#include "base/json_fields.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

constexpr std::size_t k_longest_line = 2048;

tree::Progress sum_of(const std::map<std::string, tree::Progress>& nodes, std::chrono::milliseconds took) {
  tree::Progress sum{.took = took};
  for (const auto& [name, one] : nodes) {
    sum.files += one.files;
    sum.bytes += one.bytes;
    sum.total_files += one.total_files;
    sum.total_bytes += one.total_bytes;
  }
  return sum;
}

} // namespace

std::string text_of_nodes(const std::map<std::string, tree::Progress>& nodes, std::chrono::milliseconds took) {
  constexpr std::uint64_t k_percent = 100;
  std::vector<std::pair<std::uint64_t, std::string>> open;
  for (const auto& [name, one] : nodes)
    if (one.bytes < one.total_bytes)
      open.emplace_back(one.bytes * k_percent / one.total_bytes, name);
  std::ranges::sort(open);
  std::vector<std::string> texts;
  for (const auto& [percent, name] : open)
    texts.push_back(fmt::format("{} {} %", name, percent));
  const auto sum = sum_of(nodes, took).text();
  return texts.empty() ? sum : sum + "; " + join(texts, ", ");
}

void FleetProgress::add_answer(const std::string& node, std::string_view state) {
  if (const auto found = m_nodes.find(node); found != m_nodes.end()) { // it has all of it, or will report nothing more
    found->second.bytes = found->second.total_bytes;
    found->second.files = found->second.total_files;
  }
  m_line.advance(fmt::format("{}: {}", node, state));
}

void FleetProgress::add_line(const std::string& node, const std::string& line) {
  const auto json = read_json<Json>(line, {.bytes = k_longest_line, .depth = 2});
  if (!json || !json->is_object() || !json->contains("progress") || !json->contains("bytes")) // not a sign of life
    return;
  read_fields(*json, m_nodes[node]);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(sys::Clock::now() - m_begin);
  m_line.update(text_of_nodes(m_nodes, took));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(took);
  if (!m_context.flags.json || seconds <= m_reported)
    return;
  m_reported = seconds;
  const auto sum = sum_of(m_nodes, took);
  Json text{{"progress", to_utf8(m_what)},
            {"bytes", sum.bytes},
            {"total_bytes", sum.total_bytes},
            {"seconds", seconds.count()},
            {"nodes", Json::object()}};
  for (const auto& [name, each] : m_nodes)
    text["nodes"][name] = {{"bytes", each.bytes}, {"total_bytes", each.total_bytes}};
  m_context.console.message(text_of_json(text));
}

} // namespace sharefs::cli
