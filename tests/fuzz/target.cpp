#include "fuzz/target.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

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

}  // namespace vfpass::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  vfpass::fuzz::runTarget({reinterpret_cast<const char*>(data), size});
  return 0;
}
