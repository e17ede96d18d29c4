#pragma once
// What is known of paths of a launch: each asked once, when it is needed.
#include "cachefix/store/local_root.hpp"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sharefs::cachefix {

using Names = std::vector<std::string>;

/// Who answers: a machine, or a table in tests.
class Answers {
 public:
  Answers() = default;
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  virtual ~Answers() = default;
  /// Is any mount of this host shared? If not, no path is.
  virtual bool any_shared() = 0;
  /// What lies at each path, through links, as far as `what` asks for it; within a deadline.
  virtual std::vector<sys::Entry> entries(const std::vector<std::string>& paths, const sys::EntryQuery& what) = 0;
  virtual LocalRoot local(Holds holds) = 0;
};

/// Asks, and remembers. References stay valid.
class Facts {
 public:
  explicit Facts(Answers& answers) : m_answers(answers) {}

  bool any_shared();
  const sys::Entry& place(const std::string& path);
  bool is_shared(const std::string& path) { return place(path).shared; }
  /// These are going to be asked about: all in one look.
  void expect(const std::vector<std::string>& paths);
  /// A regular file of at most k_text bytes; nullopt: not there, larger, or not readable.
  const std::optional<std::string>& text(const std::string& path);
  /// Its first bytes; empty: not there or not readable.
  const std::string& start(const std::string& path);
  /// The names in a directory, none where nothing is; nullopt: no directory, or no answer.
  const std::optional<Names>& names(const std::string& path);
  /// names() has none because this user may not read them.
  [[nodiscard]] bool is_refused(const std::string& path) const { return m_refused.contains(path); }
  const LocalRoot& local(Holds holds = Holds::data);
  /// Was this asked for, so that an answer is known?
  [[nodiscard]] const std::optional<LocalRoot>& local_if_asked(Holds holds) const {
    return m_local[static_cast<std::size_t>(holds)];
  }

  static constexpr std::size_t k_text = 1U << 20U;

 private:
  Answers& m_answers;
  std::optional<bool> m_any_shared;
  std::map<std::string, sys::Entry> m_places;
  std::map<std::string, std::optional<std::string>> m_texts;
  std::map<std::string, std::string> m_starts;
  std::map<std::string, std::optional<Names>> m_names;
  std::set<std::string> m_refused;                 ///< directories whose names this user may not read
  std::array<std::optional<LocalRoot>, 2> m_local; ///< by Holds
};

class MachineAnswers : public Answers {
 public:
  MachineAnswers(sys::System& system, LocalChoice choice) : m_system(system), m_choice(std::move(choice)) {}
  bool any_shared() override;
  std::vector<sys::Entry> entries(const std::vector<std::string>& paths, const sys::EntryQuery& what) override;
  LocalRoot local(Holds holds) override;
  /// The mount table could not be read: no answer above is worth anything.
  [[nodiscard]] const std::optional<Error>& error() const { return m_error; }

 private:
  sys::System& m_system;
  LocalChoice m_choice;
  std::optional<Error> m_error;
};

} // namespace sharefs::cachefix
