#include "cachefix/shell/shell.hpp"

#include "cachefix/files/config_text.hpp"
#include "cachefix/launchers/launcher.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace sharefs::cachefix {
namespace {

using Json = nlohmann::json;

constexpr std::size_t k_bytes_of_step = 16; // of a tree that is parsed
constexpr int k_from = 56;                  // `<`
constexpr int k_here = 61;                  // `<<`; `<<-` and `<<<` are the next

/// One assignment: it holds behind its end. No value: it is not literal.
struct Assigned {
  std::size_t end = 0;
  std::optional<std::string> value;
};

struct Variable {
  std::vector<Assigned> assignments; ///< in the order of the text
  bool certain = true;               ///< each of them is done, once, in this shell
  std::string cache_dir;             ///< what stands behind a `--cache_dir` in any of them, as written
};
using Variables = std::map<std::string, Variable>;

/// A list of the node; empty if it has none of this name.
const Json& list_in(const Json& node, const char* name) {
  static const Json k_none = Json::array();
  const auto found = node.find(name);
  return found == node.end() ? k_none : *found;
}

std::size_t offset_of(const Json& node, const char* key) {
  return node.at(key).at("Offset").get<std::size_t>();
}
std::string kind_of(const Json& node) {
  return node.is_object() ? node.value("Type", std::string()) : std::string();
}

/// `OPTS="--lr 1 --cache_dir /share/c"`, or an array of such words: what the option's value looks like.
std::string cache_dir_in(std::string assignment) {
  std::ranges::replace_if(assignment, [](char c) { return c == '"' || c == '\'' || c == '(' || c == ')'; }, ' ');
  return cache_dir_of_arguments(assignment).value_or("");
}

bool is_certain_inside(const std::string& type) {
  return type.empty() || is_listed(type, "File CallExpr DeclClause BinaryCmd Block");
}

class SyntaxReader {
 public:
  SyntaxReader(const std::string& text, const ShellVariables& known, Budget& budget)
      : m_text(text), m_known(known), m_budget(budget) {}

  ShellText read(const Json& file) {
    if (const auto all = m_known.find("@"); all != m_known.end())
      arguments(all->second);
    // First what is assigned anywhere, then the words: a later assignment makes a variable uncertain everywhere.
    visit(file, true, true);
    visit(file, true, false);
    for (const auto& [name, variable] : m_variables)
      if (!variable.assignments.empty() || !variable.certain)
        m_out.assigned.insert(name);
    const Json& statements = list_in(file, "Stmts");
    m_out.first_statement = statements.empty() ? m_text.size() : offset_of(statements.front(), "Pos");
    return std::move(m_out);
  }

 private:
  void pay(std::size_t Budget::* what, std::size_t amount = 1) const {
    if (!m_budget.take(what, amount))
      throw std::length_error(m_budget.spent);
  }

  void visit(const Json& node, bool certain, bool counting) {
    pay(&Budget::steps);
    if (node.is_array()) {
      for (const Json& child : node)
        visit(child, certain, counting);
      return;
    }
    if (!node.is_object())
      return;
    const std::string type = kind_of(node);
    const std::string outer = m_function;
    if (type == "FuncDecl" && outer.empty())
      m_function = node.at("Name").value("Value", std::string());
    if (node.contains("Cmd")) {
      m_input = input_of(node, k_here, k_here + 2);
      m_reads = input_of(node, k_from, k_from);
    }
    const bool pipes = type == "BinaryCmd" && node.value("Op", 0) > 11; // 10 is &&, 11 is ||; pipes run in subshells
    const bool inside = certain && is_certain_inside(type) && !pipes && !node.value("Background", false);
    if (type == "CallExpr" || type == "DeclClause") {
      m_certain = certain;
      if (counting)
        count(node, type, certain);
      else
        command(node, type, certain);
    }
    if (type == "ParamExp")
      parameter(node, counting);
    if (counting && type == "ForClause" && node.contains("Loop") && node.at("Loop").contains("Name"))
      m_variables[node.at("Loop").at("Name").value("Value", std::string())].certain = false;
    for (const auto& [key, child] : node.items())
      if (child.is_structured())
        visit(child, inside && !(type == "BinaryCmd" && node.value("Op", 0) == 11 && key == "Y"), counting);
    m_function = outer;
  }

  void count(const Json& node, const std::string& type, bool certain) {
    const Json& args = list_in(node, "Args");
    const bool declares = type == "DeclClause";
    const bool alone = declares || args.empty();
    for (const Json& assign : declares ? args : list_in(node, "Assigns")) {
      const std::string text = text_of(assign);
      const std::string name = variable_in(text);
      if (name.empty())
        continue;
      if (is_nameref(node)) {
        m_namerefs[name] = text.substr(std::min(name.size() + 1, text.size()));
        continue;
      }
      Variable& variable = m_variables[name];
      if (!alone)
        continue; // in front of a command it holds for that command only
      std::string hidden = cache_dir_in(text_at(assign));
      if (hidden.empty() && assign.contains("Value")) { // made of another variable that has one
        const ShellWord whole = word(assign.at("Value"));
        hidden = whole.hidden.empty() ? cache_dir_in(whole.text) : whole.hidden;
      }
      if (!hidden.empty())
        variable.cache_dir = std::move(hidden);
      variable.certain = variable.certain && certain && !assign.contains("Append") && !assign.contains("Index") &&
                         !assign.contains("Array");
      if (assign.contains("Append"))
        m_out.expanded.insert(name); // it is made of itself
      if (declares && is_declared(node, "export", 'x'))
        m_out.exported.insert(name);
      if (declares && is_declared(node, "readonly", 'r'))
        m_out.fixed.insert(name);
      // In the order of the text, so that a variable may be made of earlier ones. `export NAME` assigns nothing.
      if (std::string value = text.substr(name.size()); !value.empty())
        variable.assignments.push_back(
            {offset_of(assign, "End"), is_unknown(value) ? std::nullopt : std::optional(value.substr(1))});
    }
    // read, unset and the like change variables that are named as words.
    if (type == "CallExpr" && !args.empty()) {
      const std::string name = known_text(args.front()).value_or("");
      if (is_listed(name, "read unset eval mapfile getopts printf"))
        for (const Json& word : args)
          if (const auto text = known_text(word))
            m_variables[*text].certain = false;
      bool is_value = false; // `set -euo pipefail`
      const bool options_only = std::all_of(args.begin() + 1, args.end(), [&](const Json& word) {
        const auto text = known_text(word);
        const bool is_option = text && (text->starts_with('-') || text->starts_with('+')) && *text != "--";
        return std::exchange(is_value, is_option && text->ends_with('o')) ? text.has_value() : is_option;
      });
      if (name == "shift" || (name == "set" && !options_only))
        m_has_arguments = false;
      if (name == "set" && !options_only)
        arguments(text_at(node));
      if (name == "set")
        for (const Json& word : args)
          if (const std::string option = known_text(word).value_or("");
              option == "allexport" ||
              (option.starts_with('-') && !option.starts_with("--") && option.find('a') != std::string::npos))
            m_out.exports_all = true;
    }
  }

  [[nodiscard]] std::string text_at(const Json& node) const {
    const std::size_t begin = offset_of(node, "Pos");
    return m_text.substr(begin, offset_of(node, "End") - begin);
  }

  /// What `$@` stands for.
  void arguments(const std::string& text) {
    for (const char* all : {"@", "*"})
      m_variables[all].cache_dir = cache_dir_in(text);
  }

  /// The texts or files of a statement's redirections of these kinds.
  [[nodiscard]] std::string input_of(const Json& statement, int first, int last) const {
    std::string text;
    for (const Json& redirection : list_in(statement, "Redirs"))
      if (const char* from = redirection.contains("Hdoc") ? "Hdoc" : "Word";
          redirection.value("Op", 0) >= first && redirection.value("Op", 0) <= last)
        for (const Json& part : list_in(redirection.at(from), "Parts"))
          text += part_text(part, from[0] == 'H');
    return text;
  }

  /// By `export`, or by `declare -x`.
  [[nodiscard]] bool is_declared(const Json& node, std::string_view by, char option) const {
    const Json& args = list_in(node, "Args");
    return node.value("/Variant/Value"_json_pointer, std::string()) == by ||
           std::any_of(args.begin(), args.end(), [&](const Json& word) {
             const auto text =
                 word.contains("Value") && !word.contains("Name") ? known_text(word.at("Value")) : std::nullopt;
             return text && text->starts_with('-') && text->find(option) != std::string::npos;
           });
  }

  /// `declare -n other=NAME`: what is assigned to `other` is NAME's.
  [[nodiscard]] bool is_nameref(const Json& node) const {
    return kind_of(node) == "DeclClause" && is_declared(node, "nameref", 'n');
  }

  /// `NAME=value` as the shell sees it, the whole of it in quotes or not; `NAME` of `export NAME`; empty: an option.
  [[nodiscard]] std::string text_of(const Json& assign) const {
    std::string value = assign.contains("Value") ? word(assign.at("Value")).text : std::string();
    if (!assign.contains("Name"))
      return assigns_variable(value) ? value : std::string();
    std::string name = assign.at("Name").value("Value", std::string());
    if (const auto nameref = m_namerefs.find(name); nameref != m_namerefs.end())
      name = nameref->second;
    if (assign.contains("Naked"))
      return name;
    return std::move(name) + "=" + (assign.contains("Append") ? std::string(1, k_unknown_part) : "") + value;
  }

  /// `$NAME`, `${NAME...}`; `${NAME:=value}` assigns.
  void parameter(const Json& node, bool counting) {
    constexpr int k_assign = 74;
    constexpr int k_assign_if_empty = 75;
    const std::string name = variable_of(node);
    const int operation = node.contains("Exp") ? node.at("Exp").value("Op", 0) : 0;
    const bool assigns = operation == k_assign || operation == k_assign_if_empty;
    if (counting && assigns)
      m_variables[name].certain = false;
    if (counting)
      return;
    if (!assigns)
      m_out.expanded.insert(name);
    else if (node.at("Exp").contains("Word")) {
      ShellWord one = word(node.at("Exp").at("Word"));
      one.text = name + "=" + one.text;
      m_out.defaults.push_back(std::move(one));
    }
  }

  void command(const Json& node, const std::string& type, bool certain) {
    ShellCommand out;
    out.certain = certain;
    out.function = m_function;
    out.input = m_input;
    out.reads = m_reads;
    if (type == "DeclClause") {
      if (is_nameref(node))
        return;
      const bool exported = is_declared(node, "export", 'x');
      if (exported)
        out.kind = ShellCommand::Kind::exported;
      for (const Json& assign : list_in(node, "Args"))
        if (assign.contains("Value") && !text_of(assign).empty())
          (exported ? out.words : out.assignments).push_back(assignment(assign));
        else if (exported && assign.contains("Value") && !known_text(assign.at("Value")))
          out.unknown.push_back(word(assign.at("Value")));
      if (!exported && out.assignments.empty())
        return;
    } else {
      for (const Json& assign : list_in(node, "Assigns"))
        if (assign.contains("Value"))
          out.assignments.push_back(assignment(assign));
      for (const Json& word : list_in(node, "Args"))
        out.words.push_back(this->word(word));
    }
    m_out.commands.push_back(std::move(out));
  }

  [[nodiscard]] ShellWord assignment(const Json& assign) const {
    ShellWord out = word(assign.at("Value"));
    out.text = text_of(assign);
    place(assign, out);
    return out;
  }

  static void place(const Json& node, ShellWord& out) {
    out.begin = offset_of(node, "Pos");
    out.end = offset_of(node, "End");
    out.line = node.at("Pos").value("Line", 1);
    out.column = node.at("Pos").value("Col", 1);
  }

  [[nodiscard]] ShellWord word(const Json& node) const {
    ShellWord out;
    place(node, out);
    const auto look = [&](const Json& inner) {
      const std::string name = variable_of(inner);
      if (const auto known = m_variables.find(name);
          known != m_variables.end() && (!known->second.cache_dir.empty() || !known->second.assignments.empty()))
        out.hidden = known->second.cache_dir;
      else if (const auto outer = m_known.find(name); outer != m_known.end())
        out.hidden = cache_dir_in(outer->second);
      if (const auto instead = "/Exp/Word"_json_pointer; out.hidden.empty() && inner.contains(instead))
        out.hidden = cache_dir_in(text_at(inner.at(instead))); // ${NAME:+--cache_dir $NAME}
    };
    for (const Json& part : list_in(node, "Parts")) {
      pay(&Budget::steps);
      out.text += part_text(part, false);
      if (kind_of(part) == "DblQuoted" && part.contains("Parts"))
        std::ranges::for_each(part.at("Parts"), look);
      else
        look(part);
    }
    pay(&Budget::bytes, out.text.size());
    if (!is_unknown(out.text))
      out.hidden.clear(); // all of it is seen
    return out;
  }

  [[nodiscard]] std::optional<std::string> known_text(const Json& node) const {
    std::string text = word(node).text;
    return is_unknown(text) ? std::nullopt : std::optional(std::move(text));
  }

  [[nodiscard]] std::string part_text(const Json& part, bool quoted) const {
    const std::string type = kind_of(part);
    if (type == "Lit")
      return literal(part.value("Value", std::string()), quoted);
    if (type == "SglQuoted") {
      const std::string value = part.value("Value", std::string());
      const bool escapes = part.value("Dollar", false) && value.find('\\') != std::string::npos;
      return escapes ? std::string(1, k_unknown_part) : value;
    }
    if (type == "DblQuoted") {
      std::string out;
      for (const Json& inner : list_in(part, "Parts"))
        out += part_text(inner, true);
      return out;
    }
    if (type == "ParamExp")
      return expansion(part, quoted);
    return std::string(1, k_unknown_part);
  }

  static std::string literal(const std::string& raw, bool quoted) {
    if (!quoted && raw == "[") // the program test(1), not a pattern
      return raw;
    std::string out;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const char c = raw[i];
      if (c == '\\' && i + 1 < raw.size()) {
        const char next = raw[i + 1];
        if (next == '\n') {
          ++i;
          continue;
        }
        if (!quoted || std::string_view("$`\"\\").find(next) != std::string_view::npos) {
          out += next;
          ++i;
          continue;
        }
      }
      const bool special = !quoted && std::string_view("*?[{").find(c) != std::string_view::npos;
      out += special || c == k_unknown_part ? k_unknown_part : c;
    }
    return out;
  }

  static std::string variable_of(const Json& part) {
    return kind_of(part) == "ParamExp" && part.contains("Param") ? part.at("Param").value("Value", std::string())
                                                                 : std::string();
  }

  [[nodiscard]] std::string expansion(const Json& part, bool quoted) const {
    const std::string name = variable_of(part);
    std::string unknown = std::string(1, k_unknown_part) + name;
    for (const auto& [key, value] : part.items())
      if (!is_listed(key, "Type Pos End Dollar Rbrace Short Param"))
        return unknown; // ${x:-y}, ${#x}, ${x[0]} and the like
    const auto value = value_at(name, offset_of(part, "Pos"));
    if (!value || name == "@") // words, not one
      return unknown;
    pay(&Budget::bytes, value->size());
    if (!quoted && value->find_first_of(" \t\n*?[") != std::string::npos)
      return unknown; // it would be split or expanded
    return *value;
  }

  /// The value of a variable at an offset: of the last assignment before it, where each is certain. A place that is not
  /// run in the order of the text (a function, a loop) sees it only if there is no other.
  [[nodiscard]] std::optional<std::string> value_at(const std::string& name, std::size_t at) const {
    const auto own = m_variables.find(name);
    if (own != m_variables.end() && !own->second.certain)
      return std::nullopt;
    const auto* all = own == m_variables.end() ? nullptr : &own->second.assignments;
    if (all == nullptr || all->empty() || (m_certain && all->front().end > at)) {
      const auto outer = m_known.find(name);
      const bool argument = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
      return outer == m_known.end() || (argument && !(m_has_arguments && m_certain)) ? std::nullopt
                                                                                     : std::optional(outer->second);
    }
    if (all->front().end > at || (!m_certain && all->size() > 1))
      return std::nullopt;
    pay(&Budget::steps, all->size());
    return std::prev(std::ranges::find_if(*all, [at](const Assigned& one) { return one.end > at; }))->value;
  }

  const std::string& m_text;
  const ShellVariables& m_known;
  Budget& m_budget;
  Variables m_variables;
  std::map<std::string, std::string> m_namerefs;
  std::string m_function;       ///< whose body is read
  std::string m_input, m_reads; ///< of the command that is read
  bool m_certain = true;        ///< of the command that is read
  bool m_has_arguments = true;  ///< `$1` is still what it was
  ShellText m_out;
};

} // namespace

bool is_unknown(std::string_view text) {
  return text.find(k_unknown_part) != std::string_view::npos;
}

std::optional<ShellText> read_shell(const std::string& text, const std::string& tree, Budget& budget,
                                    const ShellVariables& known) {
  if (!budget.take(&Budget::steps, tree.size() / k_bytes_of_step) || nesting_of(tree, true) > Budget::k_nested_syntax)
    return std::nullopt;
  try {
    return SyntaxReader(text, known, budget).read(Json::parse(tree));
  } catch (const std::exception&) { // nlohmann's own, and what costs too much
    return std::nullopt;
  }
}

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
