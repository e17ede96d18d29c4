#pragma once
// Finds the processes that notes of use name, on this host and in its containers. Another host's are not known here.
#include "conda/generation.hpp"
#include "sys/system.hpp"

#include <map>
#include <optional>
#include <utility>

namespace sharefs::conda {

/// Answers by /proc. The processes of containers are read once, when the first note of a container is asked for, so
/// that notes which were read later than that need a new object.
class NotedProcesses {
 public:
  explicit NotedProcesses(sys::System& system) : m_system(system), m_self(system.identity()) {}
  /// Returns the number that the process of a use has on this host; 0: it has ended; nullopt: it is on another host,
  /// which alone knows that, or this host hides it.
  std::optional<int> find(const Use& use);
  std::optional<bool> is_running(const Use& use);
  /// True if the use keeps its generation: its process runs here and its user owns the note, or the note is fresh and
  /// its process is not known to have ended.
  bool keeps_generation(const Use& use, std::int64_t now);

 private:
  struct Contained {
    std::map<std::pair<int, std::uint64_t>, int> here = {}; ///< number in the container, start time -> number here
    bool all = false; ///< one that is not in `here` has ended; false if others may be hidden from this process
  };
  [[nodiscard]] Contained read_contained() const;
  [[nodiscard]] bool sees_others() const;

  sys::System& m_system;
  sys::Identity m_self;
  std::optional<Contained> m_contained;
};

} // namespace sharefs::conda
