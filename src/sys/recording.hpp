#pragma once
// What a machine was asked, and what it answered: taken down on one machine, and given again on another, which is not
// looked at. Answers are kept by their question; a question that is put several times has its answers in their order.
#include "base/result.hpp"
#include "sys/fs/files.hpp"
#include "sys/recorded_fields.hpp"

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sharefs::sys {

class Recording {
 public:
  Recording() = default; ///< an empty one, that takes down
  /// One that answers: `text` as text() makes it. `config` with the line for what is no recording.
  static Result<std::shared_ptr<Recording>> parse(std::string_view text);
  [[nodiscard]] bool answers() const { return m_answers; }

  /// Whatever belongs to it: which program, how it was called.
  nlohmann::json head = nlohmann::json::object();
  /// A line for each question; `change` is applied to every text in it.
  [[nodiscard]] std::string text(const std::function<std::string(const std::string&)>& change) const;
  /// Every text in it.
  void each_text(const std::function<void(const std::string&)>& see) const;
  /// The first text of each question of a kind.
  [[nodiscard]] std::vector<std::string> keys_of(std::string_view kind) const;
  /// Questions that it had no answer to, and every text in them.
  [[nodiscard]] std::vector<std::string> unanswered() const;
  void each_unanswered_text(const std::function<void(const std::string&)>& see) const;

  /// Where it takes down: what `look` finds, a Result. Where it answers, `look` is never called, and what was not
  /// asked then is `unsupported`.
  template <class Question, class Look>
  auto ask(std::string_view kind, const Question& question, const Look& look) -> std::invoke_result_t<const Look&> {
    using Value = typename std::invoke_result_t<const Look&>::value_type;
    auto key = nlohmann::json::array({kind, to_recorded(question)});
    if (!m_answers) {
      auto found = look();
      remember(std::move(key), found ? nlohmann::json{{"is", to_recorded(*found)}}
                                     : nlohmann::json{{"error", to_recorded(found.error())}});
      return found;
    }
    const auto answer = next(key);
    if (!answer)
      return fail(answer.error());
    Value value{};
    if (const auto is = answer->find("is"); is != answer->end() && from_recorded(*is, value))
      return value;
    Error error;
    if (const auto failed = answer->find("error"); failed != answer->end() && from_recorded(*failed, error))
      return fail(std::move(error));
    return fail(damaged(key));
  }

 private:
  struct Answers {
    std::vector<nlohmann::json> all;
    std::size_t given = 0;
  };
  void remember(nlohmann::json key, nlohmann::json answer);
  Result<nlohmann::json> next(const nlohmann::json& key);
  static Error damaged(const nlohmann::json& key);

  bool m_answers = false;
  mutable std::mutex m_mutex; ///< servers are asked at the same time
  std::map<nlohmann::json, Answers> m_asked;
  std::set<nlohmann::json> m_unanswered;
};

/// `look()`, by the recording of these files where they have one. For what is not asked by System or Files.
template <class Question, class Look>
auto recorded(const Files& files, std::string_view kind, const Question& question, const Look& look)
    -> std::invoke_result_t<const Look&> {
  return files.recording() == nullptr ? look() : files.recording()->ask(kind, question, look);
}

} // namespace sharefs::sys
