#include "conda/verified.hpp"

#include "base/number.hpp"
#include "base/path.hpp"
#include "base/text.hpp"
#include "conda/image.hpp"
#include "conda/staged.hpp"
#include "tree/survey.hpp"

#include <fmt/format.h>

namespace sharefs::conda {

std::string format_verified(const Generation& generation, const Verified& noted) {
  return fmt::format("{} {} {}{}{}\n", generation.number, generation.created, noted.at,
                     noted.fingerprint.empty() ? "" : " ", noted.fingerprint);
}

Verified parse_verified(std::string_view text, const Generation& generation) {
  constexpr std::int64_t k_latest = 1LL << 40U; // a later time cannot be shown as a date
  auto words = split_words(trim(text));
  const bool known_again = words.size() == 4 && is_hash(words[3]);
  if ((words.size() != 3 && !known_again) || words[0] != std::to_string(generation.number) ||
      words[1] != std::to_string(generation.created))
    return {};
  const auto at = parse_number<std::int64_t>(words[2]).value_or(0);
  if (at <= 0 || at > k_latest)
    return {};
  return {at, known_again ? std::move(words[3]) : std::string()};
}

void note_verified(sys::System& system, const SharedEnvironment& environment, const Generation& record, bool good,
                   const std::string& fingerprint) {
  const auto& files = system.files();
  const auto path = join_path(generations_path(environment.store, environment.name), "verified");
  const auto before = files.read_if_exists(path, k_largest_note);
  if (!before || (!good && parse_verified(before->value_or(""), record).at == 0))
    return;
  const auto removed = before->has_value() ? files.remove(path) : Result<void>{}; // it may belong to another user
  const Verified noted{std::chrono::system_clock::to_time_t(system.now()), fingerprint};
  if (removed && good)
    std::ignore = files.write_if(path, std::nullopt, format_verified(record, noted));
}

std::optional<KnownGeneration> find_known(sys::System& system, const GenerationPath& generation, const plan::Say& say) {
  auto environment = probe_environment(system, generation.store, generation.name);
  const auto* one = environment ? environment->find(generation.number) : nullptr;
  if (one == nullptr || !one->record)
    return std::nullopt;
  KnownGeneration known{.environment = {}, .record = *one->record, .fingerprint = {}, .noted = {}};
  known.environment = std::move(*environment);
  known.noted = parse_verified(known.environment.verified, known.record);
  const auto path = known.environment.path(generation.number);
  if (auto survey =
          tree::survey({.path = path, .root = system.files().root()}, {}, say.progress("looking at " + path), true))
    known.fingerprint = std::move(survey->fingerprint);
  return known;
}

CheckedImages check_images(sys::System& system, const KnownGeneration& known, const std::string& stage,
                           const plan::Say& say) {
  CheckedImages checked;
  const auto& [environment, record, fingerprint, noted] = known;
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
  if (source && system.identity().uid == 0)
    if (const auto staged = find_staged(system, stage, 0, *source))
      if (const auto copied = system.entry({.path = image_path(staged->tree.path)});
          copied.kind == sys::EntryKind::file) // compared with its own mark: the share's image may be newer
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
