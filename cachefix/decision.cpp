#include "cachefix/decision.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <iterator>

namespace sharefs::cachefix {

const char* to_string(ChangeKind kind) {
  return name_in(std::array{"argument", "environment", "file"}, kind);
}

const char* to_string(Action action) {
  return name_in(std::array{"leave", "rewrite", "drop", "set", "warn"}, action);
}

Decision reported(Severity severity, std::string code, const std::string& subject, std::string message,
                  std::string hint) {
  return {.action = Action::warn,
          .flag = subject,
          .diagnosis = Diagnosis{severity, std::move(code), to_utf8(subject), std::move(message), std::move(hint), ""}};
}

Decision warning(std::string code, const std::string& subject, std::string message, std::string hint) {
  return reported(Severity::warning, std::move(code), subject, std::move(message), std::move(hint));
}

void append(Decisions& all, Decisions more) {
  std::ranges::move(more, std::back_inserter(all));
}

namespace {

bool overlap(const Edit& a, const Edit& b) {
  return a.begin < b.end && b.begin < a.end;
}

/// One word with its edits, from the right: what stands before is not moved.
std::string edited_word(std::string word, const std::vector<const Edit*>& edits) {
  std::vector<const Edit*> used;
  for (const Edit* edit : edits)
    if (edit->end <= word.size() &&
        std::ranges::none_of(used, [&](const Edit* other) { return overlap(*edit, *other); }))
      used.insert(used.begin(), edit); // of insertions at one place the first stays in front
  std::ranges::stable_sort(used, [](const Edit* a, const Edit* b) { return a->begin > b->begin; });
  for (const Edit* edit : used)
    word.replace(edit->begin, edit->end - edit->begin, edit->text);
  return word;
}

} // namespace

std::map<std::size_t, WordChange> word_changes(const Argv& argv, const Decisions& decisions) {
  std::map<std::size_t, std::vector<const Edit*>> by_word;
  for (const Decision& decision : decisions)
    for (const Edit& edit : decision.edits)
      if (auto& all = by_word[std::min(edit.word, argv.size())];
          std::ranges::none_of(all, [&](const Edit* other) { return *other == edit; }))
        all.push_back(&edit);
  std::map<std::size_t, WordChange> changes;
  for (const auto& [word, edits] : by_word) {
    WordChange& change = changes[word];
    std::vector<const Edit*> inside;
    for (const Edit* edit : edits) {
      change.before.insert(change.before.end(), edit->words.begin(), edit->words.end());
      change.gone = change.gone || edit->whole;
      if (!edit->whole && edit->words.empty())
        inside.push_back(edit);
    }
    if (word < argv.size() && !inside.empty())
      change.text = edited_word(argv[word], inside);
  }
  return changes;
}

Argv edited(const Argv& argv, const Decisions& decisions) {
  const auto changes = word_changes(argv, decisions);
  Argv result;
  result.reserve(argv.size());
  for (std::size_t i = 0; i <= argv.size(); ++i) {
    const auto change = changes.find(i);
    if (change != changes.end())
      result.insert(result.end(), change->second.before.begin(), change->second.before.end());
    if (i < argv.size() && (change == changes.end() || !change->second.gone))
      result.push_back(change != changes.end() && change->second.text ? *change->second.text : argv[i]);
  }
  return result;
}

} // namespace sharefs::cachefix
