#include "fuzz/target.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "vfpass/base/text.hpp"

namespace vfpass::fuzz {

void require(bool holds, const char* property) {
  if (!holds) {
    std::fprintf(stderr, "violated: %s\n", property);
    std::abort();
  }
}

void requirePrintable(std::string_view text) {
  require(printableLines(text) == text, "the text contains only printable characters");
}

void requireSound(const Error& error) {
  require(error.what()[0] != '\0', "an error has a message");
  requirePrintable(error.what());
  requirePrintable(error.remedy());
}

std::filesystem::path fastFolder() {
  const std::filesystem::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path();
}

void writeFile(const std::filesystem::path& file, std::string_view content) {
  std::ofstream(file, std::ios::binary) << content;
}

std::string contentOf(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace vfpass::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  vfpass::fuzz::runTarget({reinterpret_cast<const char*>(data), size});
  return 0;
}
