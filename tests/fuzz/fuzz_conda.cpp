// What an environment holds: records in JSON, and files with a prefix. Never a crash; what is replaced can be put back.
// Input: a byte of choices, then a record or the content of a file.
#include "conda/records.hpp"
#include "support/fuzz.hpp"

#include <cstdint>

using namespace sharefs;
using namespace sharefs::conda;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0)
    return 0;
  const unsigned choices = bytes[0];
  const std::string_view input(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  if ((choices & 1U) != 0) {
    if (auto record = parse_record(input)) {
      for (const auto& file : record->files)
        FUZZ_CHECK(!file.path.starts_with('/') && ("/" + file.path + "/").find("/../") == std::string::npos);
      add_placeholders(*record, input);
      if (!record->files.empty() && !record->files.front().installed().empty())
        if (const auto edits =
                checksum_edits(*record, input,
                               {{record->files.front().path, record->files.front().installed(), std::string(64, 'f')}}))
          FUZZ_CHECK(parse_record(apply_edits(input, *edits).value_or(""))->files.front().installed() ==
                     std::string(64, 'f'));
    }
    return 0;
  }
  PrefixChange change;
  change.from = "/a/p";
  change.to = (choices & 2U) != 0 ? "/b/qqqq" : (choices & 4U) != 0 ? "/" + std::string(130, 'x') + "/y z" : "/b/q";
  change.mode = (choices & 8U) != 0 ? FileMode::binary : FileMode::text;
  change.guessed = (choices & 32U) != 0;
  change.env_is_prefix = (choices & 64U) != 0;
  change.slot = (choices & 128U) != 0 ? 9 : 0;
  const auto edits = prefix_edits(input, change);
  if (edits) {
    const auto result = apply_edits(input, *edits);
    FUZZ_CHECK(result.has_value());
    FUZZ_CHECK(apply_edits(*result, invert_edits(*edits)) == input);
    FUZZ_CHECK(change.mode == FileMode::text || result->size() == input.size());
    if (!PrefixNeedle(change.from).in(input) && !change.env_is_prefix)
      FUZZ_CHECK(edits->empty());
  }
  (void)named_prefixes(input);
  return 0;
}
