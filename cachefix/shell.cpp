#include "cachefix/shell.hpp"

#include "cachefix/config_text.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

namespace sharefs::cachefix {
namespace {

using Json = nlohmann::json;

constexpr int k_most_syntax_depth = 200;

/// A variable that is assigned once, for certain, and literally.
struct Variable {
  int assignments = 0;
  bool certain = true;
  std::optional<std::string> value;
  std::size_t at = 0;    ///< end of the assignment: it holds behind it
  std::string cache_dir; ///< what stands behind a `--cache_dir` in any of its assignments, as written
};
using Variables = std::map<std::string, Variable>;

std::size_t offset_of(const Json& node, const char* key) {
  return node.at(key).at("Offset").get<std::size_t>();
}
std::string kind_of(const Json& node) {
  return node.is_object() ? node.value("Type", std::string()) : std::string();
}

/// `OPTS="--lr 1 --cache_dir /share/c"`, or an array of such words: what the option's value looks like.
std::string cache_dir_in(std::string assignment) {
  std::replace_if(
      assignment.begin(), assignment.end(), [](char c) { return c == '"' || c == '\'' || c == '(' || c == ')'; }, ' ');
  return cache_dir_of_arguments(assignment).value_or("");
}

bool is_certain_inside(const std::string& type) {
  return type.empty() || type == "File" || type == "CallExpr" || type == "DeclClause" || type == "BinaryCmd" ||
         type == "Block";
}

class SyntaxReader {
 public:
  explicit SyntaxReader(const std::string& text) : m_text(text) {}

  ShellText read(const Json& file) {
    // First what is assigned anywhere, then the words: a later assignment makes a variable uncertain everywhere.
    visit(file, true, 0, true);
    visit(file, true, 0, false);
    ShellText result;
    result.commands = std::move(m_commands);
    const Json& statements = file.contains("Stmts") ? file.at("Stmts") : Json::array();
    result.first_statement = statements.empty() ? m_text.size() : offset_of(statements.front(), "Pos");
    return result;
  }

 private:
  void visit(const Json& node, bool certain, int depth, bool counting) {
    if (depth > k_most_syntax_depth)
      throw std::length_error("the shell text is nested too deeply");
    if (node.is_array()) {
      for (const Json& child : node)
        visit(child, certain, depth + 1, counting);
      return;
    }
    if (!node.is_object())
      return;
    const std::string type = kind_of(node);
    bool inside = certain && is_certain_inside(type);
    if (type == "BinaryCmd" && node.value("Op", 0) > 11) // 10 is &&, 11 is ||; pipes run in subshells
      inside = false;
    if (node.contains("Background") && node.at("Background").is_boolean() && node.at("Background").get<bool>())
      inside = false;
    if (type == "CallExpr" || type == "DeclClause") {
      if (counting)
        count(node, type, certain);
      else
        command(node, type, certain);
    }
    if (counting && type == "ForClause" && node.contains("Loop") && node.at("Loop").contains("Name"))
      m_variables[node.at("Loop").at("Name").value("Value", std::string())].certain = false;
    for (const auto& [key, child] : node.items())
      if (child.is_structured())
        visit(child, inside && !(type == "BinaryCmd" && node.value("Op", 0) == 11 && key == "Y"), depth + 1, counting);
  }

  void count(const Json& node, const std::string& type, bool certain) {
    const Json& assigns = node.contains(type == "DeclClause" ? "Args" : "Assigns")
                              ? node.at(type == "DeclClause" ? "Args" : "Assigns")
                              : Json::array();
    const bool alone = type == "DeclClause" || !node.contains("Args") || node.at("Args").empty();
    for (const Json& assign : assigns) {
      if (!assign.contains("Name"))
        continue;
      Variable& variable = m_variables[assign.at("Name").value("Value", std::string())];
      if (!alone)
        continue; // in front of a command it holds for that command only
      ++variable.assignments;
      const std::size_t begin = offset_of(assign, "Pos");
      if (std::string hidden = cache_dir_in(m_text.substr(begin, offset_of(assign, "End") - begin)); !hidden.empty())
        variable.cache_dir = std::move(hidden);
      variable.certain = variable.certain && certain && !assign.contains("Append") && !assign.contains("Index") &&
                         !assign.contains("Array");
      variable.at = offset_of(assign, "End");
      // In the order of the text, so that a variable may be made of earlier ones.
      variable.value = assign.contains("Value") ? known_text(assign.at("Value")) : std::nullopt;
    }
    // read, unset and the like change variables that are named as words.
    if (type == "CallExpr" && node.contains("Args") && !node.at("Args").empty()) {
      const auto name = known_text(node.at("Args").front());
      if (name == "read" || name == "unset" || name == "eval" || name == "mapfile" || name == "getopts" ||
          name == "printf")
        for (const Json& word : node.at("Args"))
          if (const auto text = known_text(word))
            m_variables[*text].certain = false;
    }
  }

  void command(const Json& node, const std::string& type, bool certain) {
    ShellCommand out;
    out.certain = certain;
    if (type == "DeclClause") {
      if (node.value("/Variant/Value"_json_pointer, std::string()) != "export")
        return;
      out.kind = ShellCommand::Kind::exported;
      for (const Json& assign : node.contains("Args") ? node.at("Args") : Json::array())
        if (assign.contains("Name") && assign.contains("Value"))
          out.words.push_back(assignment(assign));
    } else {
      for (const Json& assign : node.contains("Assigns") ? node.at("Assigns") : Json::array())
        if (assign.contains("Value"))
          out.assignments.push_back(assignment(assign));
      for (const Json& word : node.contains("Args") ? node.at("Args") : Json::array())
        out.words.push_back(this->word(word));
    }
    m_commands.push_back(std::move(out));
  }

  [[nodiscard]] ShellWord assignment(const Json& assign) const {
    ShellWord out = word(assign.at("Value"));
    out.text = assign.at("Name").value("Value", std::string()) + "=" + out.text;
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
    for (const Json& part : node.contains("Parts") ? node.at("Parts") : Json::array()) {
      out.text += part_text(part, false);
      for (const Json& inner : kind_of(part) == "DblQuoted" && part.contains("Parts") ? part.at("Parts") : Json{part})
        if (const auto known = m_variables.find(variable_of(inner)); known != m_variables.end())
          out.hidden = known->second.cache_dir;
    }
    if (out.text.find(k_unknown_part) == std::string::npos)
      out.hidden.clear(); // all of it is seen
    return out;
  }

  [[nodiscard]] std::optional<std::string> known_text(const Json& node) const {
    std::string text = word(node).text;
    return text.find(k_unknown_part) == std::string::npos ? std::optional<std::string>(std::move(text)) : std::nullopt;
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
      for (const Json& inner : part.contains("Parts") ? part.at("Parts") : Json::array())
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
      if (key != "Type" && key != "Pos" && key != "End" && key != "Dollar" && key != "Rbrace" && key != "Short" &&
          key != "Param")
        return unknown; // ${x:-y}, ${#x}, ${x[0]} and the like
    const auto known = m_variables.find(name);
    if (known == m_variables.end() || known->second.assignments != 1 || !known->second.certain ||
        !known->second.value || known->second.at > offset_of(part, "Pos"))
      return unknown;
    if (!quoted && known->second.value->find_first_of(" \t\n*?[") != std::string::npos)
      return unknown; // it would be split or expanded
    return *known->second.value;
  }

  const std::string& m_text;
  Variables m_variables;
  std::vector<ShellCommand> m_commands;
};

} // namespace

std::optional<ShellText> read_shell(const std::string& text, const std::string& tree) {
  try {
    return SyntaxReader(text).read(Json::parse(tree));
  } catch (const std::exception&) { // nlohmann's own, and the depth limit
    return std::nullopt;
  }
}

} // namespace sharefs::cachefix
