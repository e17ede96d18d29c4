#include "cli/say.hpp"

#include "cli/tree_progress.hpp"

namespace sharefs::cli {

plan::Say say_to(Context& context) {
  return {
      .message = [&context](std::string_view text) { context.console.message(text); },
      .warning = [&context](std::string_view text, std::string_view hint) { context.console.warning(text, hint); },
      .report = [&context](const Diagnoses& found) { context.report(found); },
      .progress = [&context](std::string what) -> tree::OnProgress {
        const auto line = std::make_shared<TreeProgress>(context, std::move(what));
        return [line, on = line->on()](const tree::Progress& now) { on(now); };
      },
  };
}

} // namespace sharefs::cli
