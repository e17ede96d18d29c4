// sharefs explain: prints what a code means. It neither reads sharefs.yaml nor asks another machine.
#include "base/json_fields.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "cli/commands/explain/pages.hpp"
#include "cli/context.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// Returns "SF212" for "sf212", "212" and "[SF212]".
std::string code_of(const std::string& word) {
  std::string code;
  for (const char byte : word)
    if (byte != '[' && byte != ']')
      code += byte >= 'a' && byte <= 'z' ? static_cast<char>(byte - 'a' + 'A') : byte;
  const bool number = !code.empty() && code.find_first_not_of("0123456789") == std::string::npos;
  return number ? "SF" + code : code;
}

using Chosen = std::vector<const Explanation*>;

/// Returns the pages that have the phrase: first those that have it in their title, then in their cause, then
/// elsewhere. Without words it returns all pages.
Result<Chosen> find_phrase(const std::vector<std::string>& words) {
  const auto phrase = lower_case(join(words, " "));
  Chosen found;
  for (const auto part : {&Explanation::title, &Explanation::cause, &Explanation::usual, &Explanation::see,
                          &Explanation::cure, &Explanation::does})
    for (const auto& one : explanations())
      if (!one.title.starts_with("(retired)") && std::ranges::find(found, &one) == found.end() &&
          lower_case(one.*part).find(phrase) != std::string::npos)
        found.push_back(&one);
  if (found.empty())
    return fail(ErrorCode::usage, fmt::format("no page has `{}`", join(words, " ")),
                "`sharefs explain` lists all; `sharefs doctor` finds what is wrong here");
  return found;
}

Result<Chosen> find_codes(const std::vector<std::string>& words) {
  Chosen found;
  for (const auto& word : words) {
    const auto code = code_of(word);
    const auto one = std::ranges::find(explanations(), code, &Explanation::code);
    if (one == explanations().end()) {
      std::vector<std::string> codes;
      for (const auto& known : explanations())
        codes.push_back(known.code);
      const auto hint = did_you_mean_hint(code, codes);
      return fail(ErrorCode::usage, fmt::format("there is no code `{}`", word),
                  hint.empty() ? "`sharefs explain` lists them" : hint + " (`sharefs explain` lists them)");
    }
    found.push_back(&*one);
  }
  return found;
}

std::string page_of(const Explanation& one, std::size_t width) {
  std::string page = fmt::format("{}: {}\n\n{}\n", one.code, one.title, fill(one.cause, width));
  for (const auto& [label, text] : {std::pair{"Usual cause", &one.usual},
                                    {"How to see it", &one.see},
                                    {"Cure", &one.cure},
                                    {"What sharefs does", &one.does}})
    if (!text->empty())
      page += "\n" + fill(fmt::format("{}: {}", label, *text), width) + "\n";
  return page;
}

Result<int> run_explain(Context& context, const Arguments& arguments) {
  const auto& words = arguments.positional;
  const bool by_code = std::ranges::any_of(words, [](const auto& word) { // also words that are probably meant as codes
    const auto code = code_of(word);
    return code.size() > 2 && code.starts_with("SF") && code[2] >= '0' && code[2] <= '9';
  });
  TRY_ASSIGN(const auto chosen, by_code ? find_codes(words) : find_phrase(words));
  const bool lists = !by_code && chosen.size() > 1;
  ui::Table table({{"CODE"}, {"MEANING", false, true}});
  auto json = Json::array();
  std::string pages;
  for (const auto* one : chosen) {
    json.push_back(lists ? Json{{"code", one->code}, {"title", one->title}} : json_of(*one));
    if (lists)
      table.add({{one->code}, {one->title}});
    else
      pages += (pages.empty() ? "" : "\n") + page_of(*one, text_width(context.console.options().width));
  }
  context.show(table, "codes", std::move(json));
  context.console.print(pages);
  if (lists && !words.empty() && !context.flags.json)
    context.console.message(fmt::format("`sharefs explain {}` shows the first of them", chosen.front()->code));
  return k_exit_ok;
}

} // namespace

extern const CommandSpec k_explain_command{
    .name = "explain",
    .summary = "Explain a code such as SF212, or find the page of an error message",
    .description =
        "Each thing that sharefs finds wrong has a code, which stands behind the message. This prints what it means: "
        "the cause, how to see it, its cure, and what sharefs does about it. Words find the pages that contain them. "
        "The "
        "same is in docs/diagnoses. Needs no sharefs.yaml, and asks nobody.",
    .example = "sharefs explain SF212\n"
               "sharefs explain stale file handle\n"
               "sharefs explain            # all codes with their titles",
    .positional = {.name = "CODE|WORD", .help = "SF212, or 212; or words of an error message"},
    .run = run_explain,
};

} // namespace sharefs::cli
