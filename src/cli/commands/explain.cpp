// sharefs explain: what a code means. Neither reads sharefs.yaml nor asks anybody.
#include "base/text.hpp"
#include "cli/commands/explain_pages.hpp"
#include "cli/context.hpp"
#include "cli/exit_code.hpp"
#include "cli/help.hpp"
#include "ui/table.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace sharefs::cli {

namespace {

/// "SF212" of "sf212", "212" and "[SF212]".
std::string code_of(const std::string& word) {
  std::string code;
  for (const char byte : word)
    if (byte != '[' && byte != ']')
      code += byte >= 'a' && byte <= 'z' ? static_cast<char>(byte - 'a' + 'A') : byte;
  const bool number = !code.empty() && code.find_first_not_of("0123456789") == std::string::npos;
  return number ? "SF" + code : code;
}

Result<std::vector<const Explanation*>> select(const std::vector<std::string>& words) {
  std::vector<const Explanation*> chosen;
  for (const auto& word : words) {
    const auto code = code_of(word);
    const auto found = std::ranges::find(explanations(), code, &Explanation::code);
    if (found == explanations().end()) {
      std::vector<std::string> codes;
      for (const auto& one : explanations())
        codes.push_back(one.code);
      const auto hint = did_you_mean_hint(code, codes);
      return fail(ErrorCode::usage, fmt::format("there is no code `{}`", word),
                  hint.empty() ? "`sharefs explain` lists them" : hint + " (`sharefs explain` lists them)");
    }
    chosen.push_back(&*found);
  }
  return chosen;
}

std::string page_of(const Explanation& one) {
  std::string page = fmt::format("{}: {}\n\n{}\n", one.code, one.title, fill(one.cause));
  for (const auto& [label, text] : {std::pair{"Usual cause", &one.usual},
                                    {"How to see it", &one.see},
                                    {"Cure", &one.cure},
                                    {"What sharefs does", &one.does}})
    if (!text->empty())
      page += "\n" + fill(fmt::format("{}: {}", label, *text)) + "\n";
  return page;
}

Result<int> run_explain(Context& context, const Arguments& arguments) {
  const auto chosen = select(arguments.positional);
  if (!chosen)
    return fail(chosen.error());
  const bool lists = chosen->empty();
  ui::Table table({{"CODE"}, {"MEANING", false, true}});
  auto json = nlohmann::ordered_json::array();
  std::string pages;
  for (const auto* one : *chosen) {
    pages += (pages.empty() ? "" : "\n") + page_of(*one);
    json.push_back({{"code", one->code},
                    {"title", one->title},
                    {"cause", one->cause},
                    {"usual_cause", one->usual},
                    {"see", one->see},
                    {"cure", one->cure},
                    {"sharefs", one->does}});
  }
  for (const auto& one : lists ? explanations() : std::vector<Explanation>()) {
    table.add({{one.code}, {one.title}});
    json.push_back({{"code", one.code}, {"title", one.title}});
  }
  context.envelope.fields["codes"] = std::move(json);
  context.console.show(table);
  if (!context.flags.json)
    context.console.out() << pages;
  return k_exit_ok;
}

} // namespace

extern const CommandSpec k_explain_command{
    .name = "explain",
    .summary = "Explain a code such as SF212, or list all of them",
    .description =
        "Each thing that sharefs finds wrong has a code, which stands behind the message. This prints what it means: "
        "the cause, how to see it, its cure, and what sharefs does about it. The same is in docs/diagnoses. Needs no "
        "sharefs.yaml, and asks nobody.",
    .example = "sharefs explain SF212\n"
               "sharefs explain            # all codes with their titles",
    .effect = Effect::reads,
    .positional = {.name = "CODE", .help = "SF212, or 212"},
    .run = run_explain,
};

} // namespace sharefs::cli
