#include "exports/take_over.hpp"

#include "base/text.hpp"
#include "exports/lexer.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::exports {

namespace {

constexpr std::string_view k_moved = "# moved to sharefs.exports: ";
constexpr std::string_view k_goes_on = "# ";

/// Behind the last word of the line that begins at `offset`, which may go on over several lines of the file.
std::size_t end_of_entry(std::string_view text, std::size_t offset) {
  Lexer lexer(text.substr(offset));
  Word word;
  while (!lexer.at_line_end()) {
    static_cast<void>(lexer.next(text.size() + 1, word));
    lexer.skip_blanks();
  }
  return offset + lexer.offset();
}

bool same_entry(const Export& a, const Export& b) {
  return a.directory == b.directory && a.client == b.client && a.defaults == b.defaults && a.options == b.options;
}

/// The file without the entries of `lines`: nullopt if it cannot be made so that exportfs reads all others as before.
std::optional<plan::File> without(const ExportsFile& file, const std::string& text, const std::set<Origin>& lines) {
  auto after = comment_out(text, lines);
  if (!after)
    return std::nullopt;
  auto left = file.exports;
  std::erase_if(left, [&](const Export& entry) { return lines.contains(entry.line); });
  const auto again = parse(*after, file.name);
  if (again.complete != file.complete || !std::ranges::equal(again.exports, left, same_entry) ||
      !std::ranges::equal(again.lost, file.lost, same_entry))
    return std::nullopt;
  return plan::File{file.name, text, std::move(*after)};
}

using Key = std::pair<std::string, std::string>; ///< directory, and what makes a client the same

class Keys {
 public:
  explicit Keys(const HostFacts& facts) : m_clients(facts) {}
  [[nodiscard]] Key of(const Export& entry) const {
    return {entry.directory, join(m_clients.keys(entry.client), std::string(1, '\0'))};
  }

 private:
  Clients m_clients;
};

/// By directory: the clients of each kind of which several may fit one host, in order, if that matters.
std::map<std::string, std::vector<std::pair<ClientKind, std::string>>> order_of(const std::vector<Export>& exports,
                                                                                const Keys& keys) {
  std::map<std::string, std::vector<const Export*>> several;
  for (const auto& entry : exports)
    if (const auto kind = kind_of(entry.client); kind != ClientKind::host && kind != ClientKind::everyone)
      several[entry.directory].push_back(&entry);
  std::map<std::string, std::vector<std::pair<ClientKind, std::string>>> order;
  for (const auto& [directory, entries] : several) {
    const auto& first = entries[0]->settings;
    if (std::ranges::all_of(entries, [&](const Export* entry) { return entry->settings == first; }))
      continue;
    for (const auto* entry : entries)
      order[directory].emplace_back(kind_of(entry->client), keys.of(*entry).second);
    std::ranges::stable_sort(order[directory], {}, &std::pair<ClientKind, std::string>::first);
  }
  return order;
}

/// Names that do not resolve now may do so later.
HostFacts as_if_all_resolve(HostFacts facts) {
  std::erase_if(facts.names, [](const auto& name) { return name.second.addresses.empty(); });
  return facts;
}

} // namespace

std::optional<std::string> comment_out(std::string_view text, const std::set<Origin>& lines) {
  std::vector<std::size_t> starts{0};
  for (auto at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    starts.push_back(at + 1);
  const LineIndex index(text);
  std::string out;
  std::size_t copied = 0;
  for (const auto& [file, line, column] : lines) { // in the order of the file
    const auto first = static_cast<std::size_t>(line) - 1;
    if (line < 1 || first >= starts.size() || column < 1)
      return std::nullopt;
    const auto begin = starts[first] + static_cast<std::size_t>(column) - 1;
    const auto front = text.substr(starts[first], begin - starts[first]);
    if (begin > text.size() || starts[first] < copied || front.find_first_not_of(" \t") != std::string_view::npos)
      return std::nullopt;
    const auto last = static_cast<std::size_t>(index.at(end_of_entry(text, begin)).line) - 1;
    for (auto row = first; row <= last; ++row) {
      out += text.substr(copied, starts[row] - copied);
      out += row == first ? k_moved : k_goes_on;
      copied = starts[row];
    }
    const auto end = last + 1 < starts.size() ? starts[last + 1] : text.size();
    out += text.substr(copied, end - copied);
    copied = end;
  }
  return out.append(text.substr(copied));
}

Diagnoses changes(const std::vector<Export>& before, const std::vector<Export>& after, const HostFacts& facts,
                  bool will) {
  constexpr const char* k_code = "SF151";
  const Keys keys(facts);
  std::map<Key, const Export*> then;
  std::map<Key, const Export*> now;
  for (const auto& entry : before)
    then.try_emplace(keys.of(entry), &entry);
  for (const auto& entry : after)
    now.try_emplace(keys.of(entry), &entry);
  Diagnoses found;
  for (const auto& [key, entry] : then)
    if (!now.contains(key))
      found.push_back(at(Severity::error, k_code, entry->origin,
                         fmt::format("{} {} exported to `{}` any more ({})", entry->directory,
                                     will ? "would not be" : "is not", entry->client, summary(entry->settings)),
                         will ? "add the client to sharefs.yaml, or remove it here first" : ""));
  for (const auto& [key, entry] : now) {
    const auto was = then.find(key);
    if (was == then.end())
      found.push_back(
          at(Severity::error, k_code, entry->origin,
             fmt::format("{} {} exported to `{}` ({}), which it {} not", entry->directory, will ? "would be" : "is",
                         entry->client, summary(entry->settings), will ? "is" : "was"),
             will ? "remove the client, or run `sharefs export --all` first" : ""));
    else if (const auto differs = differences(was->second->settings, entry->settings); !differs.empty())
      found.push_back(
          at(Severity::error, k_code, entry->origin,
             fmt::format("{} {} exported to `{}` with {} ({})", entry->directory, will ? "would be" : "is",
                         entry->client, join(differs, ", "), was->second->origin.text()),
             will ? fmt::format("write the options that it has now: `{}`", summary(was->second->settings)) : ""));
  }
  if (found.empty() && order_of(before, keys) != order_of(after, keys))
    for (const auto& [directory, order] : order_of(before, keys))
      if (order_of(after, keys)[directory] != order)
        found.push_back({Severity::error, k_code, directory,
                         fmt::format("the order of the networks, wildcards or netgroups of {} {}, and of two that fit "
                                     "a host the first counts",
                                     directory, will ? "would change" : "has changed"),
                         "write them in sharefs.yaml in the order of the exports file", ""});
  return found;
}

TakeOver take_over(const Actual& actual, const Request& wanted, const std::map<std::string, std::string>& texts,
                   const Ask& ask) {
  TakeOver result{{}, actual, {}};
  auto& [request, after, found] = result;
  request.drop_adhoc = wanted.drop_adhoc;
  std::set<std::string> directories; // of sharefs.yaml
  for (const auto& entry : wanted.exports)
    directories.insert(real_path(entry.directory, actual.facts));
  std::set<std::string> taken;
  for (auto& file : after.files.files) {
    if (file.name == k_own_file)
      continue;
    std::set<Origin> lines;
    for (const auto& entry : file.exports)
      if (const auto real = real_path(entry.directory, actual.facts); directories.contains(real)) {
        lines.insert(entry.line);
        taken.insert(real);
      }
    const auto text = texts.find(file.name);
    if (lines.empty() || text == texts.end())
      continue;
    auto write = without(file, text->second, lines);
    if (!write) {
      found.push_back(at(Severity::error, "SF152", *lines.begin(),
                         "these lines cannot be commented out so that exportfs reads all others as before",
                         "correct what `sharefs export check` says about this file, and let each entry begin a line"));
      continue;
    }
    file = parse(*write->after, file.name);
    file.text = *write->after;
    request.moved.push_back(std::move(*write));
  }
  for (const auto& entry : wanted.exports)
    if (taken.contains(real_path(entry.directory, actual.facts)))
      request.exports.push_back(entry);
  if (has_errors(found) || request.moved.empty())
    return result;

  const auto composed = compose(after, request, ask);
  const auto all = as_if_all_resolve(actual.facts);
  found = changes(ask(actual.files.files, all).entries, ask(composed.files, all).entries, all, true);
  if (has_errors(found))
    return result;
  auto exported = actual.etab;
  const ExportIndex adhoc(actual.facts, composed.adhoc);
  std::erase_if(exported, [&](const Export& entry) { return adhoc.has(entry); });
  if (!changes(exported, ask(actual.files.files, actual.facts).entries, actual.facts, true).empty())
    found.push_back({Severity::error, "SF153", k_etab, "what is exported now is not what the exports files say",
                     "run `exportfs -ra` if the files are right, and then this again", ""});
  return result;
}

} // namespace sharefs::exports
