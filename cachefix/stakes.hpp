#pragma once
// What is at stake: facts about paths and texts, each asked once, when it is needed.
#include "cachefix/budget.hpp"
#include "cachefix/files/python_source.hpp"
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
  virtual std::vector<sys::Entry> entries(const std::vector<std::string>& paths, const sys::EntryQuery& what,
                                          std::chrono::milliseconds deadline) = 0;
  /// As `shfmt --tojson` prints it; nullopt: no parser, or it does not understand it.
  virtual std::optional<std::string> syntax_tree(const std::string& shell_text, std::chrono::milliseconds deadline) = 0;
  /// May an interpreter have anything to say of it?
  [[nodiscard]] virtual bool may_tell(const std::string& python_source) const = 0;
  virtual SourceFacts source_facts(const std::string& python_source, std::chrono::milliseconds deadline) = 0;
  virtual LocalRoot local(Holds holds) = 0;
};

/// Asks, and remembers, within the launch's budget: behind it every answer is that nothing is known. References stay
/// valid.
class Stakes {
 public:
  explicit Stakes(Answers& answers, Budget budget = {}) : m_answers(answers), m_budget(std::move(budget)) {}

  [[nodiscard]] Budget& budget() { return m_budget; }

  bool any_shared();
  const sys::Entry& place(const std::string& path);
  bool is_shared(const std::string& path) { return place(path).shared; }
  /// These are going to be asked about: all in one look.
  void expect(const std::vector<std::string>& paths);
  /// A regular file of at most 4 MiB; nullopt: not there, larger, or not readable.
  const std::optional<std::string>& text(const std::string& path);
  /// Its first bytes; empty: not there or not readable.
  const std::string& start(const std::string& path);
  /// The names in a directory, none where nothing is; nullopt: no directory, or no answer.
  const std::optional<Names>& names(const std::string& path);
  /// names() has none because this user may not read them.
  [[nodiscard]] bool is_refused(const std::string& path) const { return m_refused.contains(path); }
  const std::optional<std::string>& syntax_tree(const std::string& shell_text);
  /// Of the file at a path; `parsed` is false where it cannot be read.
  const SourceFacts& source(const std::string& path);
  /// Of a source itself.
  const SourceFacts& facts(const std::string& python_source);
  const LocalRoot& local(Holds holds = Holds::data);
  /// Was this asked for, so that an answer is known?
  [[nodiscard]] const std::optional<LocalRoot>& local_if_asked(Holds holds = Holds::data) const {
    return m_local[static_cast<std::size_t>(holds)];
  }

  /// `*.incomplete` directories of launches that failed, in a cache: CACHE/BUILDER/CONFIG/VERSION/HASH.incomplete
  /// (datasets/builder.py).
  const Names& leftovers(const std::string& cache) { return scan(cache).leftovers; }
  /// Does it hold datasets, complete or not, or what else a library cached? Without an answer it may.
  bool has_datasets(const std::string& cache);
  /// Does it hold more than what launches that failed left? Without an answer it may.
  bool has_complete(const std::string& cache) { return has_datasets(cache) && scan(cache).complete; }
  /// The first name in a directory that neither datasets nor a hub library makes there; empty: none.
  std::string foreign_name(const std::string& cache);

 private:
  struct Scan {
    Names leftovers;
    bool complete = false; ///< something finished lies there, or may
  };
  const Scan& scan(const std::string& cache);
  std::vector<sys::Entry> entries(const std::vector<std::string>& paths, const sys::EntryQuery& what);
  /// All that are not known yet, in one look.
  void expect_names(const std::vector<std::string>& paths);
  bool is_builder_directory(const std::string& path);

  Answers& m_answers;
  Budget m_budget;
  std::optional<bool> m_any_shared;
  std::map<std::string, sys::Entry> m_places;
  std::map<std::string, std::optional<std::string>> m_texts, m_trees;
  std::map<std::string, std::string> m_starts;
  std::map<std::string, std::optional<Names>> m_names;
  std::set<std::string> m_refused; ///< directories whose names this user may not read
  std::map<std::string, SourceFacts> m_sources;
  std::map<std::string, Scan> m_scans;
  std::array<std::optional<LocalRoot>, 2> m_local; ///< by Holds
};

class MachineAnswers : public Answers {
 public:
  MachineAnswers(sys::System& system, LocalChoice choice) : m_system(system), m_choice(std::move(choice)) {}
  bool any_shared() override;
  std::vector<sys::Entry> entries(const std::vector<std::string>& paths, const sys::EntryQuery& what,
                                  std::chrono::milliseconds deadline) override;
  std::optional<std::string> syntax_tree(const std::string& shell_text, std::chrono::milliseconds deadline) override;
  [[nodiscard]] bool may_tell(const std::string& python_source) const override;
  SourceFacts source_facts(const std::string& python_source, std::chrono::milliseconds deadline) override;
  LocalRoot local(Holds holds) override;
  /// The mount table could not be read: no answer above is worth anything.
  [[nodiscard]] const std::optional<Error>& error() const { return m_error; }

 private:
  sys::System& m_system;
  LocalChoice m_choice;
  std::optional<Error> m_error;
};

} // namespace sharefs::cachefix
