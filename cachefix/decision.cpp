#include "cachefix/decision.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <iterator>

namespace sharefs::cachefix {
namespace {

/// One word with its edits, from the right: what stands before is not moved. Of insertions at one place the first stays
/// in front.
std::string edited_word(std::string word, std::vector<const Edit*> edits) {
  std::ranges::reverse(edits);
  std::ranges::stable_sort(edits, [](const Edit* a, const Edit* b) { return a->begin > b->begin; });
  std::size_t untouched = word.size();
  for (const Edit* edit : edits)
    if (edit->end <= untouched) {
      word.replace(edit->begin, edit->end - edit->begin, edit->text);
      untouched = edit->begin;
    }
  return word;
}

} // namespace

const char* to_string(ChangeKind kind) {
  return name_in(std::array{"argument", "environment", "file"}, kind);
}

const char* to_string(Action action) {
  return name_in(std::array{"leave", "rewrite", "set", "guard", "warn"}, action);
}

Decision warning(std::string code, const std::string& subject, std::string message, std::string hint,
                 Severity severity) {
  return {.action = Action::warn,
          .flag = subject,
          .diagnosis = Diagnosis{severity, std::move(code), to_utf8(subject), std::move(message), std::move(hint), ""}};
}

void append(Decisions& all, Decisions more) {
  std::ranges::move(more, std::back_inserter(all));
}

Argv edited(const Argv& argv, const Decisions& decisions) {
  std::vector<const Edit*> all;
  for (const Decision& decision : decisions)
    for (const Edit& edit : decision.edits)
      if (std::ranges::none_of(all, [&](const Edit* other) { return *other == edit; }))
        all.push_back(&edit);
  std::ranges::stable_sort(all, {}, &Edit::word);
  Argv result;
  auto edit = all.begin();
  for (std::size_t i = 0; i <= argv.size(); ++i) {
    std::vector<const Edit*> inside;
    for (; edit != all.end() && (*edit)->word == i; ++edit)
      if ((*edit)->words.empty())
        inside.push_back(*edit);
      else
        result.insert(result.end(), (*edit)->words.begin(), (*edit)->words.end());
    if (i < argv.size())
      result.push_back(edited_word(argv[i], std::move(inside)));
  }
  return result;
}

} // namespace sharefs::cachefix
