#include "fleet/frames.hpp"

#include "base/json.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "fleet/node.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace sharefs::fleet {

namespace {

constexpr std::string_view k_mark = "@sf1 ";
constexpr std::size_t k_most_payload = 800;         ///< with the rest of the line it stays below the 1,024 of srun
constexpr std::size_t k_most_document = 16U << 20U; ///< bytes of the document of one node
constexpr std::size_t k_most_pieces = k_most_document / k_most_payload + 1;

/// Returns the CRC-32 of zlib and Ethernet.
std::uint32_t crc32(std::string_view bytes) {
  static const auto k_table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = (value & 1U) != 0 ? 0xEDB88320U ^ (value >> 1U) : value >> 1U;
      table[i] = value;
    }
    return table;
  }();
  std::uint32_t crc = ~0U;
  for (const char byte : bytes)
    crc = k_table[(crc ^ static_cast<unsigned char>(byte)) & 0xFFU] ^ (crc >> 8U);
  return ~crc;
}

std::string frame(const std::string& node, std::size_t index, std::size_t count, std::string_view payload) {
  const auto content = fmt::format("{} {}/{} {}", node, index, count, payload);
  return fmt::format("{}{} {}/{} {:08x} {}\n", k_mark, node, index, count, crc32(content), payload);
}

/// Returns JSON text without the character that begins a frame.
std::string without_marks(const nlohmann::ordered_json& json) {
  const auto text = json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  std::string safe;
  for (const char one : text)
    one == '@' ? safe += "\\u0040" : safe += one; // an `@` occurs in strings only
  return safe;
}

/// Removes the first word and the space behind it from `text`, and returns the word.
std::string_view take_word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

} // namespace

std::optional<FrameRequest> parse_frame_request(std::string_view text) {
  const auto words = split(text, ':');
  if (words.size() < 2 || words.size() > 3)
    return std::nullopt;
  const auto protocol = parse_number<unsigned>(words[0]);
  const auto names = expand(words[1]);
  const auto seconds = words.size() == 3 ? parse_number<std::uint32_t>(words[2]) : 0;
  if (!protocol || !names || names->size() != 1 || !seconds)
    return std::nullopt;
  return FrameRequest{*protocol, names->front(), std::chrono::seconds(*seconds)};
}

std::string hello_frame(const std::string& node, std::string_view version) {
  return frame(node, 0, 0, without_marks({{"sharefs", version}, {"protocol", k_protocol}}));
}

std::string answer_frames(const std::string& node, int exit_code, std::string_view document) {
  const JsonLimits limits{.bytes = k_most_document, .members = k_most_members};
  auto parsed =
      document.empty() ? Result<nlohmann::ordered_json>(nullptr) : read_json<nlohmann::ordered_json>(document, limits);
  const auto text = without_marks({{"exit", exit_code}, {"document", parsed ? std::move(*parsed) : nullptr}});
  const auto count = (text.size() + k_most_payload - 1) / k_most_payload;
  std::string lines;
  for (std::size_t i = 0; i < count; ++i)
    lines += frame(node, i + 1, count, std::string_view(text).substr(i * k_most_payload, k_most_payload));
  return lines;
}

void FrameReader::add(std::string_view bytes) {
  for (const auto& line : split(bytes, '\n'))
    add_line(line);
}

void FrameReader::add_line(std::string_view line) {
  const auto mark = line.rfind(k_mark);
  if (mark == std::string_view::npos)
    return;
  line.remove_prefix(mark + k_mark.size());
  if (line.ends_with('\r')) // added by a terminal
    line.remove_suffix(1);
  const std::string node(take_word(line));
  const auto place = take_word(line);
  const auto crc = parse_number<std::uint32_t>(take_word(line), 16);
  const auto slash = place.find('/');
  const auto index = parse_number<std::size_t>(place.substr(0, slash));
  const auto count =
      parse_number<std::size_t>(slash == std::string_view::npos ? std::string_view() : place.substr(slash + 1));
  if (!crc || !index || !count || *index > *count || *count > k_most_pieces ||
      *crc != crc32(fmt::format("{} {} {}", node, place, line)))
    return;
  auto& pieces = m_nodes[node];
  if (*index == 0) {
    pieces.hello = line;
    return;
  }
  if (pieces.count != *count) // the pieces so far are of another run of the command
    pieces.payloads.clear();
  pieces.count = *count;
  pieces.payloads[*index] = line;
}

Answer FrameReader::answer(const std::string& node) const {
  Answer answer;
  const auto found = m_nodes.find(node);
  if (found == m_nodes.end())
    return answer;
  const auto& pieces = found->second;
  if (const auto hello = read_json(pieces.hello, {.bytes = k_most_payload})) {
    answer.version = text_in(*hello, "sharefs");
    if (const auto& protocol = member(*hello, "protocol"); protocol.is_number_unsigned())
      answer.protocol = protocol.get<unsigned>();
  }
  if (pieces.count == 0 || pieces.payloads.size() != pieces.count)
    return answer;
  std::string text;
  for (const auto& [index, payload] : pieces.payloads)
    text += payload;
  auto whole =
      read_json<nlohmann::ordered_json>(text, {.bytes = k_most_document + k_most_payload, .members = k_most_members});
  if (!whole || !member(*whole, "exit").is_number_integer())
    return answer;
  answer.exit_code = member(*whole, "exit").get<int>();
  if (member(*whole, "document").is_object())
    answer.document = std::move((*whole)["document"]);
  return answer;
}

} // namespace sharefs::fleet
