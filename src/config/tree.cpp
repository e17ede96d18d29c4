#include "config/tree.hpp"

#include "base/visible.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <sstream>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace sharefs::config {

namespace {

constexpr std::size_t k_max_depth = 32;
constexpr std::size_t k_max_cost = 200'000; ///< values plus a sixteenth of their bytes; limits what aliases can build

std::size_t cost_of(const Node& node) {
  std::size_t cost = 1 + node.text.size() / 16;
  for (const auto& item : node.items)
    cost += cost_of(item);
  for (const auto& [place, name, plain, value] : node.entries)
    cost += 1 + name.size() / 16 + cost_of(value);
  return cost;
}

/// Builds the tree from the events of yaml-cpp. To stop the parser a Problem is thrown through yaml-cpp and caught by
/// read_tree, because the interface has no other way.
class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(const Source& source) : m_source(source) {}

  Node take() { return std::move(m_root); }
  [[nodiscard]] const std::optional<YAML::Mark>& last_quoted() const { return m_last_quoted; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++m_documents > 1)
      stop(mark, "a second document begins here", "a configuration is one document; remove the `---` or `...`");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add_leaf(mark, make_node(mark, Node::Kind::null), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = m_anchors.find(anchor);
    if (found == m_anchors.end())
      stop(mark, "the alias stands inside of its own anchor", "write the value out");
    add_cost(mark, cost_of(found->second)); // before the copy, so that its size is limited
    place_value(mark, found->second);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool plain = tag == "?" || tag.empty();
    const bool text = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!plain && !text)
      refuse_tag(mark, tag);
    if (tag == "!")
      m_last_quoted = mark;
    Node scalar = make_node(mark, Node::Kind::scalar);
    scalar.text = value;
    scalar.plain = plain;
    add_leaf(mark, std::move(scalar), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, Node::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, Node::Kind::mapping);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    Node node;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    bool has_key = false; ///< of a mapping: the last entry has no value yet
  };

  [[noreturn]] void stop(const YAML::Mark& mark, std::string message, std::string hint) const {
    throw Problem{place_of(mark), std::move(message), std::move(hint)};
  }
  [[noreturn]] void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    stop(mark, fmt::format("the tag `{}` has no meaning here", shown(tag)),
         "remove it; a text that begins with `!` must be quoted");
  }
  [[nodiscard]] Node make_node(const YAML::Mark& mark, Node::Kind kind) const {
    Node result;
    result.kind = kind;
    result.place = place_of(mark);
    return result;
  }
  [[nodiscard]] Place place_of(const YAML::Mark& mark) const { return m_source.place(mark.line, mark.column); }

  void add_cost(const YAML::Mark& mark, std::size_t cost) {
    m_cost += cost;
    if (m_cost > k_max_cost)
      stop(mark, "too many values (an alias counts as much as what it stands for)", "split the configuration");
  }

  void add_leaf(const YAML::Mark& mark, Node node, YAML::anchor_t anchor) {
    add_cost(mark, 1 + node.text.size() / 16);
    if (anchor != 0)
      m_anchors[anchor] = node;
    place_value(mark, std::move(node));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind) {
    if (tag != "?" && tag != "!" && !tag.empty())
      refuse_tag(mark, tag);
    if (m_open.size() >= k_max_depth)
      stop(mark, fmt::format("nested more than {} levels deep", k_max_depth), "no key of sharefs is nested so deeply");
    add_cost(mark, 1);
    m_open.push_back({make_node(mark, kind), mark, anchor, false});
  }

  void close() {
    Level level = std::move(m_open.back());
    m_open.pop_back();
    if (level.anchor != 0) {
      add_cost(level.mark, cost_of(level.node));
      m_anchors[level.anchor] = level.node;
    }
    place_value(level.mark, std::move(level.node));
  }

  /// Puts a finished node in its place: the root, a list, a key, or the value of the last key.
  void place_value(const YAML::Mark& mark, Node node) {
    if (m_open.empty()) {
      m_root = std::move(node);
      return;
    }
    auto& [parent, parent_mark, anchor, has_key] = m_open.back();
    if (parent.kind == Node::Kind::list) {
      parent.items.push_back(std::move(node));
    } else if (has_key) {
      parent.entries.back().value = std::move(node);
      has_key = false;
    } else {
      if (node.kind != Node::Kind::scalar)
        stop(mark, "a key must be text", "write `KEY: VALUE`");
      parent.entries.push_back({node.place, std::move(node.text), node.plain, {}});
      has_key = true;
    }
  }

  const Source& m_source;
  Node m_root;
  std::vector<Level> m_open;
  std::map<YAML::anchor_t, Node> m_anchors; ///< only finished ones, so that an alias inside its own anchor is not found
  std::optional<YAML::Mark> m_last_quoted;
  std::size_t m_documents = 0, m_cost = 0;
};

struct Translation {
  std::string_view theirs, ours, hint;
};
/// Messages of yaml-cpp in words that tell a person what to do. Any other message is printed as it is.
const std::array<Translation, 14> k_translations{{
    {YAML::ErrorMsg::TAB_IN_INDENTATION, "a tab in the indentation", "indent with spaces"},
    {YAML::ErrorMsg::MAP_VALUE, "a `:` where no value can begin",
     "check the indentation of this line, and quote a text that holds `: `"},
    {YAML::ErrorMsg::MAP_KEY, "a key where none can begin", "check the indentation of this line"},
    {YAML::ErrorMsg::BLOCK_ENTRY, "a `- ` where no list can begin", "begin the list on a line of its own"},
    {YAML::ErrorMsg::END_OF_MAP, "this does not belong to the keys above it",
     "check the indentation; a key is written `KEY: VALUE`, with a space after the `:`"},
    {YAML::ErrorMsg::END_OF_SEQ, "this does not belong to the list above it", "begin each entry with `- `"},
    {YAML::ErrorMsg::END_OF_MAP_FLOW, "a `{` is not closed before this", "add the missing `}` or `,`"},
    {YAML::ErrorMsg::END_OF_SEQ_FLOW, "a `[` is not closed before this", "add the missing `]` or `,`"},
    {YAML::ErrorMsg::FLOW_END, "a `]` or `}` that closes nothing", "remove it, or quote the text"},
    {YAML::ErrorMsg::UNKNOWN_TOKEN, "no value can begin with this character", "quote the text"},
    {YAML::ErrorMsg::UNKNOWN_ANCHOR, "the alias `*` names no anchor `&` above it",
     "quote a text that begins with `*`, for example the client `\"*\"`"},
    {YAML::ErrorMsg::ALIAS_NOT_FOUND, "a `*` without a name",
     "quote a text that begins with `*`, for example the client `\"*\"`"},
    {YAML::ErrorMsg::EOF_IN_SCALAR, "the quote is never closed", "close it"},
    {YAML::ErrorMsg::BAD_FILE, "nested too deeply", "no key of sharefs is nested so deeply"},
}};

Problem translate(const Source& source, const YAML::Exception& exception) {
  const Place place = exception.mark.is_null() ? Place{1, 1} : source.place(exception.mark.line, exception.mark.column);
  // yaml-cpp reports the `:` of a key that stands in the wrong column because of a tab. The tab is the cause, so report
  // it.
  const auto line = source.line(place.line);
  const auto indentation = line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
  if (const auto tab = indentation.find('\t'); tab != std::string_view::npos)
    return {{place.line, static_cast<int>(tab) + 1}, "a tab in the indentation", "indent with spaces"};
  for (const auto& [theirs, ours, hint] : k_translations)
    if (exception.msg == theirs)
      return {place, std::string(ours), std::string(hint)};
  return {place, "not valid YAML: " + visible(exception.msg), "check the line and the one above it"};
}

/// yaml-cpp 0.7 takes the end of the file for the closing quote. This can happen only to the last quoted text.
std::optional<Problem> find_unclosed_quote(const Source& source, const YAML::Mark& mark) {
  const auto text = source.text();
  auto begin = static_cast<std::size_t>(std::max(mark.pos, 0));
  // An anchor or a tag may stand before the quote.
  while (begin < text.size() && (text[begin] == '&' || text[begin] == '!'))
    begin = std::min(text.find_first_not_of(" \t\r\n", text.find_first_of(" \t\r\n", begin)), text.size());
  if (begin >= text.size() || (text[begin] != '"' && text[begin] != '\''))
    return std::nullopt; // a block scalar
  const char quote = text[begin];
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    const bool is_escaped = quote == '"' ? text[i] == '\\' : text.substr(i, 2) == "''";
    if (is_escaped)
      ++i;
    else if (text[i] == quote)
      return std::nullopt;
  }
  return Problem{source.place_of(begin), fmt::format("the quote `{}` is never closed", quote), "close it"};
}

} // namespace

tl::expected<Node, Problem> read_tree(const Source& source) {
  std::istringstream stream{std::string(source.text())};
  Builder builder(source);
  std::optional<Problem> problem;
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& exception) {
    problem = translate(source, exception);
  } catch (Problem& stopped) {
    problem = std::move(stopped);
  } catch (const std::exception& exception) { // std::bad_alloc, or whatever hostile input makes a parser throw
    problem = Problem{{1, 1}, std::string("not readable as YAML: ") + visible(exception.what()), {}};
  }
  if (builder.last_quoted()) // an open quote is also the cause of whatever yaml-cpp reported at the end
    if (auto unclosed = find_unclosed_quote(source, *builder.last_quoted()))
      problem = std::move(unclosed);
  if (problem)
    return tl::make_unexpected(std::move(*problem));
  return builder.take();
}

} // namespace sharefs::config
