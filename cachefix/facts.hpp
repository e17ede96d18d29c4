#pragma once
// What is known of paths of a launch: each asked once, when it is needed, within a deadline.
#include "cachefix/store/local_root.hpp"

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sharefs::cachefix {

using Names = std::vector<std::string>;

enum class Look {
  place, ///< is it shared, and may it be written?
  start, ///< the first bytes of a file
  text,  ///< all of a file, of 1 MiB at most: no content where it is larger
  names, ///< those in a directory
};

/// Asks, and remembers. References stay valid.
class Facts {
 public:
  using FindLocal = std::function<LocalRoot(Holds)>;
  Facts(sys::System& system, FindLocal find_local) : m_system(system), m_find_local(std::move(find_local)) {}

  /// Is any mount of this host shared? If not, no path is.
  bool any_shared();
  /// The mount table could not be read: no answer is worth anything.
  [[nodiscard]] const std::optional<Error>& error() const { return m_error; }
  /// What lies there, through links. Of the names in a directory none where nothing is, and EntryKind::unknown where it
  /// is no directory or does not answer.
  const sys::Entry& look(const std::string& path, Look what = Look::place);
  bool is_shared(const std::string& path) { return look(path).shared; }
  /// These are going to be asked about: all in one look.
  void expect(const std::vector<std::string>& paths, Look what = Look::place);
  const LocalRoot& local(Holds holds = Holds::data);
  /// Was this asked for, so that an answer is known?
  [[nodiscard]] const std::optional<LocalRoot>& local_if_asked(Holds holds) const {
    return m_local[static_cast<std::size_t>(holds)];
  }

 private:
  sys::System& m_system;
  FindLocal m_find_local;
  std::optional<Error> m_error;
  std::optional<bool> m_any_shared;
  std::map<std::pair<Look, std::string>, sys::Entry> m_known;
  std::array<std::optional<LocalRoot>, 2> m_local; ///< by Holds
};

} // namespace sharefs::cachefix
