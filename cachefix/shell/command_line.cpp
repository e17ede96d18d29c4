#include "cachefix/shell/command_line.hpp"

namespace sharefs::cachefix {

CommandLine command_line(const ShellCommand& command, const std::set<std::string>& not_these) {
  CommandLine line;
  const auto add = [&line](const ShellWord& word) {
    line.argv.push_back(word.text);
    line.words.push_back(&word);
  };
  const auto add_unless_used = [&](const ShellWord& word) {
    if (!not_these.contains(variable_in(word.text)))
      add(word);
  };
  const bool exported = command.kind == ShellCommand::Kind::exported;
  if (exported || !command.assignments.empty()) {
    line.argv.emplace_back("env");
    line.words.push_back(nullptr);
  }
  for (const ShellWord& word : command.assignments)
    command.words.empty() ? add_unless_used(word) : add(word);
  // `exec` and `command` run what follows; with options of their own they stay the program, which nobody knows.
  std::size_t first = 0;
  while (first + 1 < command.words.size() &&
         (command.words[first].text == "exec" || command.words[first].text == "command") &&
         !command.words[first + 1].text.starts_with('-'))
    ++first;
  for (std::size_t i = first; i < command.words.size(); ++i)
    exported ? add_unless_used(command.words[i]) : add(command.words[i]);
  if (exported || command.words.empty()) { // a program for the variables: what follows in the text
    line.argv.emplace_back("true");
    line.words.push_back(nullptr);
  }
  return line;
}

std::string variable_in(const std::string& assignment) {
  return assignment.substr(0, assignment.find('='));
}

} // namespace sharefs::cachefix
