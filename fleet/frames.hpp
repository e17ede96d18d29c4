#pragma once
// How an answer comes through other programs. Login scripts print into it, pdsh glues lines of two nodes together or
// drops what is longer than it likes, srun cuts lines and gives them to the wrong task: so an answer is many short
// lines that name their node and their place in the whole, with a checksum:
//   @sf1 NODE I/N CRC PAYLOAD
// I is 0 for the line that comes before anything is done, which says who speaks; 1 to N are the pieces of the answer.
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace sharefs::fleet {

/// Another protocol means that nothing is run. It grows with what a node must understand to do as it is told.
inline constexpr unsigned k_protocol = 1;

/// What `--frame` says: "1:gpu07:600".
struct FrameRequest {
  unsigned protocol = 0;
  std::string node;
  std::chrono::seconds deadline{0}; ///< when the command is ended; 0: never
};
/// nullopt: malformed.
std::optional<FrameRequest> parse_frame_request(std::string_view text);

/// The line before anything is done.
std::string hello_frame(const std::string& node, std::string_view version);
/// The lines of an answer: what the command printed, one JSON document or nothing, and its exit code.
std::string answer_frames(const std::string& node, int exit_code, std::string_view document);

/// What has come from one node.
struct Answer {
  std::string version; ///< of sharefs there; empty: nothing came
  unsigned protocol = 0;
  std::optional<int> exit_code;    ///< nullopt: the answer is not complete
  nlohmann::ordered_json document; ///< null: none
};

/// Takes what came, in any order and with anything between.
class FrameReader {
 public:
  void add(std::string_view bytes);
  /// Of this node.
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
