#pragma once
// Frames: how an answer passes through other programs unharmed. Login scripts print into it, pdsh joins lines of two
// nodes or drops long lines, srun cuts lines and labels them with the wrong task. So an answer is many short lines,
// each with the name of its node, its number and a checksum:
//   @sf1 NODE I/N CRC PAYLOAD
// I is 0 for the line that is sent before anything is done, with version and protocol; 1 to N are the pieces of the
// answer.
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace sharefs::fleet {

/// A node with another protocol runs nothing. The number rises when a node must understand more to do what is asked.
inline constexpr unsigned k_protocol = 1;

/// The most members of one object in an answer. Reading one that keeps their order takes the square of their number.
inline constexpr std::size_t k_most_members = 1000;

/// The value of `--frame`: "1:gpu07:600".
struct FrameRequest {
  unsigned protocol = 0;
  std::string node;
  std::chrono::seconds deadline{0}; ///< after it the command is ended; 0: no deadline
};
/// Returns nullopt if the text is malformed.
std::optional<FrameRequest> parse_frame_request(std::string_view text);

/// Returns the line that is sent before anything is done.
std::string hello_frame(const std::string& node, std::string_view version);
/// Returns the lines of an answer: the output of the command (one JSON document or nothing) and its exit code.
std::string answer_frames(const std::string& node, int exit_code, std::string_view document);

/// The answer of one node, as far as it has arrived.
struct Answer {
  std::string version; ///< of sharefs on the node; empty: nothing has arrived
  unsigned protocol = 0;
  std::optional<int> exit_code;    ///< nullopt: the answer is not complete
  nlohmann::ordered_json document; ///< null: none
};

/// Collects the frames of many nodes, in any order and between other lines.
class FrameReader {
 public:
  /// Reads whole lines; lines without a valid frame are ignored.
  void add(std::string_view bytes);
  /// Returns the answer of this node.
  [[nodiscard]] Answer answer(const std::string& node) const;

 private:
  struct Pieces {
    std::string hello;
    std::size_t count = 0;
    std::map<std::size_t, std::string> payloads;
  };
  void add_line(std::string_view line);

  std::map<std::string, Pieces, std::less<>> m_nodes;
};

} // namespace sharefs::fleet
