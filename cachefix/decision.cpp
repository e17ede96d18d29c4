#include "cachefix/decision.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace sharefs::cachefix {

const char* to_string(Action action) {
  return name_in(std::array{"leave", "rewrite", "set", "guard", "warn"}, action);
}

Decision warning(std::string code, const std::string& subject, std::string message, std::string hint,
                 Severity severity) {
  return {.action = Action::warn,
          .flag = subject,
          .diagnosis = Diagnosis{severity, std::move(code), to_utf8(subject), std::move(message), std::move(hint), ""}};
}

Decision warning(const Mention& mention, Severity severity) {
  return warning(mention.code, mention.subject, mention.says, mention.hint, severity);
}

void append(Decisions& all, Decisions more) {
  std::ranges::move(more, std::back_inserter(all));
}

Argv edited(const Argv& argv, const Decisions& decisions) {
  std::vector<Edit> all;
  for (const Decision& decision : decisions)
    for (const Edit& edit : decision.edits)
      if (std::ranges::find(all, edit) == all.end())
        all.push_back(edit);
  // Edits are made from the last word to the first, and within a word from right to left, so that an edit never moves
  // the place of the next. Of several insertions at one place the first stays in front.
  std::ranges::reverse(all);
  std::ranges::stable_sort(all, [](const Edit& a, const Edit& b) {
    return std::tuple(b.word, !a.words.empty(), b.begin) < std::tuple(a.word, !b.words.empty(), a.begin);
  });
  Argv result = argv;
  for (const Edit& edit : all)
    if (edit.words.empty())
      result[edit.word].replace(edit.begin, edit.end - edit.begin, edit.text);
    else
      result.insert(result.begin() + static_cast<std::ptrdiff_t>(edit.word), edit.words.begin(), edit.words.end());
  return result;
}

} // namespace sharefs::cachefix
