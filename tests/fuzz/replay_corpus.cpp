// Stands in for libFuzzer in ordinary builds. Runs the target over every file of a directory, then over as many changed
// copies of them as are asked for, always the same ones.
//
// usage: TARGET CORPUS [CHANGED_COPIES]
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size);

namespace {

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

/// Big-endian, as XDR has them: none, too many, and those that overflow when they are multiplied or rounded up.
const std::string k_numbers[] = {std::string(4, '\0'), {0, 0, 0, 1},      {0, 0, 0, 2},       {'\x40', 0, 0, 1},
                                 "\x7F\xFF\xFF\xFF",   {'\x80', 0, 0, 0}, "\xFF\xFF\xFF\xFC", "\xFF\xFF\xFF\xFF"};

/// One to four changes: another byte, a number of `k_numbers`, a part twice, or the end cut off.
std::string changed(std::string text, std::mt19937& random) {
  const auto below = [&random](std::size_t end) { return end == 0 ? 0 : random() % end; };
  for (auto changes = 1 + below(4); changes > 0; --changes) {
    const auto at = below(text.size());
    switch (below(4)) {
    case 0:
      text.replace(at, 1, 1, static_cast<char>(random()));
      break;
    case 1:
      text.replace(at, 4, k_numbers[below(std::size(k_numbers))]);
      break;
    case 2:
      text.insert(at, text.substr(below(text.size()), below(64)));
      break;
    default:
      text.resize(at);
    }
  }
  return text;
}

} // namespace

int main(int argc, char** argv) {
  std::vector<std::string> inputs;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argc > 1 ? argv[1] : ".")) {
    if (!entry.is_regular_file())
      continue;
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    std::cerr << entry.path().filename().string() << '\n'; // the last line names the input that aborted
    run(inputs.back());
  }
  const std::size_t wanted = argc > 2 ? std::stoul(argv[2]) : 0;
  std::mt19937 random; // always the same numbers // NOLINT(cert-msc51-cpp)
  for (std::size_t i = 0; !inputs.empty() && i < wanted; ++i)
    run(changed(inputs[i % inputs.size()], random));
  std::cout << inputs.size() << " inputs, " << wanted << " changed copies of them\n";
  return inputs.empty() ? 1 : 0;
}
