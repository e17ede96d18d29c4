#include "cli/context.hpp"

#include "base/json_fields.hpp"
#include "base/text.hpp"
#include "sys/process/interrupt.hpp"

#include <algorithm>
#include <csignal>
#include <unistd.h>

namespace sharefs::cli {

namespace {

/// Reports the progress of long work. For people it is one line, which disappears with the returned value. With --json
/// it is one line of JSON a second on stderr: {"progress": "copying /x", "files", "bytes", "total_files", "total_bytes"
/// (0: not known), "seconds"}. The work is interrupted if nobody reads these lines any more.
tree::OnProgress progress_of(Context& context, const std::string& what) {
  const auto space = std::min(what.find(' '), what.size());
  const auto object = what.substr(std::min(space + 1, what.size()));
  const auto shown = std::make_shared<ui::Progress>(context.console, what.substr(0, space));
  shown->update(object);
  return [&context, what, object, shown, said = std::chrono::seconds(0)](const tree::Progress& now) mutable {
    // The numbers come first, so that a narrow terminal cuts off the path.
    const auto numbers = now.text();
    shown->update(numbers.empty() ? object : numbers + ": " + object);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now.took);
    if (!context.flags.json || seconds <= said)
      return;
    said = seconds;
    Json line{{"progress", to_utf8(what)}};
    add_fields(line, now, JsonTexts::for_people);
    line["seconds"] = seconds.count();
    context.console.message(text_of_json(line));
    if (sys::nobody_reads(STDERR_FILENO)) // the machine that asked for the work has ended it, or cannot be reached
      std::raise(SIGTERM);
  };
}

} // namespace

plan::Say say_to(Context& context) {
  return {
      .message = [&context](std::string_view text) { context.console.message(text); },
      .warning = [&context](std::string_view text, std::string_view hint) { context.console.warning(text, hint); },
      .report = [&context](const Diagnoses& found) { context.report(found); },
      .progress = [&context](const std::string& what) { return progress_of(context, what); },
  };
}

} // namespace sharefs::cli
