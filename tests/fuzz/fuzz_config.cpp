// sharefs.yaml: any bytes are a configuration or errors with places, never a crash; what is written back means the
// same.
#include "base/visible.hpp"
#include "config/keys.hpp"
#include "config/load.hpp"
#include "support/fuzz.hpp"
#include "support/same_config.hpp"

#include <cstdint>

using namespace sharefs;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto [config, errors] = config::check(text, "f");
  FUZZ_CHECK(errors.size() <= 101);
  for (const auto& error : errors) {
    FUZZ_CHECK(error.code == ErrorCode::config);
    FUZZ_CHECK(error.message.starts_with("f:"));
    FUZZ_CHECK(!find_invisible(error.message));
    FUZZ_CHECK(!find_invisible(error.hint));
    FUZZ_CHECK(error.message.size() + error.hint.size() + error.context.size() < 4096);
  }
  if (!errors.empty())
    return 0;
  const auto yaml = config::to_yaml(config);
  const auto again = config::parse(yaml, "g");
  FUZZ_CHECK(again.has_value());
  FUZZ_CHECK(test::without_origins(*again) == test::without_origins(config));
  FUZZ_CHECK(config::to_yaml(*again) == yaml);
  return 0;
}
