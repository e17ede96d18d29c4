#include "conda/verifying.hpp"

#include "base/path.hpp"
#include "base/text.hpp"
#include "conda/make_image.hpp"
#include "conda/staged.hpp"
#include "conda/verified.hpp"
#include "tree/survey.hpp"

#include <fmt/format.h>

namespace sharefs::conda {

std::string fingerprint_of(sys::System& system, const GenerationPath& generation, const plan::Say& say) {
  const auto path = generation_path(generation.store, generation.name, generation.number);
  const auto survey =
      tree::survey({.path = path, .root = system.files().root()}, {}, say.progress("looking at " + path), true);
  return survey ? survey->fingerprint : std::string();
}

std::int64_t unchanged_since(sys::System& system, const SharedEnvironment& environment, const Generation& record,
                             const std::string& fingerprint) {
  const auto text = system.files().read_if_exists(verified_path(environment.store, environment.name), k_largest_note);
  const bool same = text && !fingerprint.empty() && verified_fingerprint(text->value_or(""), record) == fingerprint;
  return same ? verified_at(text->value_or(""), record) : 0;
}

CheckedImages check_images(sys::System& system, const SharedEnvironment& environment, const Generation& record,
                           const std::string& stage, const plan::Say& say) {
  CheckedImages checked;
  const auto path = environment.path(record.number);
  const auto image = probe_image(system, path, record.created);
  const auto anew = fmt::format("`sharefs conda image {}` makes it anew", shell_quote(environment.name));
  if (image.is_damaged())
    checked.found.push_back({Severity::error, "SF536", image.path,
                             "it is not of the size that was noted when it was made, or there is no note of it", anew,
                             ""});
  if (!image.exists())
    return checked;
  std::vector<std::pair<std::string, ImageNote>> images{{image.path, *image.note}};
  const auto source = in_generation(system.entry({.path = path, .follow = true}).resolved);
  if (source && !stage.empty() && system.identity().uid == 0)
    if (const auto staged = find_staged(system, stage, 0, *source))
      if (const auto copied = system.entry({.path = image_path(staged->tree.path)});
          copied.kind == sys::EntryKind::file) // the one on the share may have been made anew since
        images.push_back({copied.path, {.sha256 = staged->what().sha256, .bytes = copied.size}});
  for (const auto& [one, note] : images) {
    const auto good = is_as_noted(system, one, note, say);
    const bool shared = one == image.path;
    if (good && *good)
      checked.good.push_back(one);
    else
      checked.found.push_back(
          {Severity::error, "SF536", one,
           good ? std::string("its content is not the one that was noted when it was made") : good.error().message,
           shared ? anew
                  : fmt::format("`sharefs conda stage {0} --remove && sharefs conda stage {0}` brings it again",
                                shell_quote(environment.name)),
           ""});
  }
  return checked;
}

} // namespace sharefs::conda
