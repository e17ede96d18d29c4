#include "sys/recording.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::sys {

using nlohmann::json;

namespace {

constexpr std::size_t k_deepest = 16;    ///< of a line
constexpr const char* k_bytes = "bytes"; ///< {"bytes": "..."}: no UTF-8; each byte is a character of Latin-1
constexpr const char* k_format = "sharefs-recording";
constexpr int k_version = 1;
constexpr std::size_t k_most_named = 300; ///< of a question in a message

void see_texts(const json& value, const std::function<void(const std::string&)>& see) {
  if (std::string text; (value.is_string() || value.is_object()) && text_from_recorded(value, text))
    see(text);
  else if (value.is_structured())
    for (const auto& one : value)
      see_texts(one, see);
}

json changed(const json& value, const std::function<std::string(const std::string&)>& change) {
  if (std::string text; (value.is_string() || value.is_object()) && text_from_recorded(value, text))
    return text_to_recorded(change(text));
  json result = value;
  if (value.is_structured())
    for (auto& one : result)
      one = changed(one, change);
  return result;
}

std::string question_of(const json& key) {
  auto text = key[0].get<std::string>() + " " + key[1].dump();
  if (text.size() > k_most_named)
    text = text.substr(0, k_most_named) + "...";
  return to_utf8(text);
}

/// The lines of a recording: the head, then an array for each question. False for what is none.
bool is_head(const json& line) {
  const auto version = line.is_object() ? line.find(k_format) : line.end();
  return line.is_object() && version != line.end() && *version == k_version;
}
bool is_question(const json& line) {
  return line.is_array() && line.size() == 3 && line[0].is_string() && line[2].is_array() && !line[2].empty() &&
         std::ranges::all_of(line[2], [](const json& answer) { return answer.is_object() && answer.size() == 1; });
}

} // namespace

json text_to_recorded(std::string_view text) {
  if (is_utf8(text))
    return text;
  std::string wide;
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    if (value >= 0x80)
      wide.push_back(static_cast<char>(0xC0U | (value >> 6U)));
    wide.push_back(static_cast<char>(value >= 0x80 ? 0x80U | (value & 0x3FU) : value));
  }
  return json{{k_bytes, wide}};
}

bool text_from_recorded(const json& value, std::string& text) {
  if (value.is_string()) {
    text = value.get<std::string>();
    return true;
  }
  const auto bytes = value.is_object() && value.size() == 1 ? value.find(k_bytes) : value.end();
  if (!value.is_object() || bytes == value.end() || !bytes->is_string())
    return false;
  const auto& wide = bytes->get_ref<const std::string&>();
  text.clear();
  for (std::size_t at = 0; at < wide.size(); ++at) {
    const auto first = static_cast<unsigned char>(wide[at]);
    if (first < 0x80) {
      text.push_back(wide[at]);
    } else if ((first == 0xC2 || first == 0xC3) && at + 1 < wide.size()) {
      text.push_back(static_cast<char>(((first & 3U) << 6U) | (static_cast<unsigned char>(wide[++at]) & 0x3FU)));
    } else {
      return false;
    }
  }
  return true;
}

bool number_from_recorded(const json& value, std::int64_t least, std::int64_t most, std::int64_t& number) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)))
    return false;
  number = value.get<std::int64_t>();
  return number >= least && number <= most;
}

Result<std::shared_ptr<Recording>> Recording::parse(std::string_view text) {
  auto recording = std::make_shared<Recording>();
  recording->m_answers = true;
  std::size_t number = 0;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto words = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    auto line = json_depth(words) <= k_deepest ? json::parse(words, nullptr, false) : json();
    if (number == 1 ? !is_head(line) : !is_question(line))
      return fail(ErrorCode::config,
                  number == 1 ? "1: is not the beginning of a recording of this version"
                              : fmt::format("{}: is no question with its answers", number),
                  "a recording is what `sharefs doctor --record FILE` wrote, whole and unchanged");
    if (number == 1) {
      recording->head = std::move(line);
      continue;
    }
    Answers answers;
    for (auto& answer : line[2])
      answers.all.push_back(std::move(answer));
    if (!recording->m_asked.emplace(json::array({line[0], line[1]}), std::move(answers)).second)
      return fail(ErrorCode::config, fmt::format("{}: the question stands in it twice", number), "");
  }
  if (number == 0)
    return fail(ErrorCode::config, "1: is empty", "");
  return recording;
}

std::string Recording::text(const std::function<std::string(const std::string&)>& change) const {
  const std::lock_guard lock(m_mutex);
  auto first = json{{k_format, k_version}};
  first.update(changed(head, change));
  auto all = first.dump() + "\n";
  for (const auto& [key, answers] : m_asked)
    all += json::array({key[0], changed(key[1], change), changed(answers.all, change)}).dump() + "\n";
  return all;
}

void Recording::each_text(const std::function<void(const std::string&)>& see) const {
  const std::lock_guard lock(m_mutex);
  see_texts(head, see);
  for (const auto& [key, answers] : m_asked) {
    see_texts(key[1], see);
    for (const auto& answer : answers.all)
      see_texts(answer, see);
  }
}

std::vector<std::string> Recording::keys_of(std::string_view kind) const {
  const std::lock_guard lock(m_mutex);
  std::vector<std::string> names;
  for (const auto& [key, answers] : m_asked)
    if (std::string text;
        key[0] == kind && text_from_recorded(key[1].is_array() && !key[1].empty() ? key[1][0] : key[1], text))
      names.push_back(text);
  return names;
}

std::vector<std::string> Recording::unanswered() const {
  const std::lock_guard lock(m_mutex);
  std::vector<std::string> names;
  for (const auto& key : m_unanswered)
    names.push_back(question_of(key));
  return names;
}

void Recording::each_unanswered_text(const std::function<void(const std::string&)>& see) const {
  const std::lock_guard lock(m_mutex);
  for (const auto& key : m_unanswered)
    see_texts(key[1], see);
}

void Recording::remember(json key, json answer) {
  const std::lock_guard lock(m_mutex);
  auto& all = m_asked[std::move(key)].all;
  all.push_back(std::move(answer));
}

Result<json> Recording::next(const json& key) {
  const std::lock_guard lock(m_mutex);
  const auto asked = m_asked.find(key);
  if (asked == m_asked.end()) {
    m_unanswered.insert(key);
    return fail(ErrorCode::unsupported, "the recording has no answer to `" + question_of(key) + "`");
  }
  auto& [all, given] = asked->second;
  return all[std::min(given++, all.size() - 1)];
}

Error Recording::damaged(const json& key) {
  return {ErrorCode::config, "the recording's answer to `" + question_of(key) + "` cannot be read", "", ""};
}

} // namespace sharefs::sys
