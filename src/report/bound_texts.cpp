#include <algorithm>
#include <string>

#include "vfpass/report/verify_report.hpp"

namespace vfpass::report {
namespace {

constexpr std::size_t largestText = 1024;
constexpr std::size_t largestSum = std::size_t{256} << 10U;

// What the text needs in JSON: control characters and invalid UTF-8 become six bytes or fewer.
std::size_t sizeInJson(char each) { return each >= ' ' && each <= '~' ? 1 : 6; }

// The number of leading bytes that fit, without a part of a UTF-8 character at the end.
std::size_t fitting(const std::string& text, std::size_t limit) {
  std::size_t size = 0;
  std::size_t bytes = 0;
  while (bytes < text.size() && size + sizeInJson(text[bytes]) <= limit) {
    size += sizeInJson(text[bytes]);
    ++bytes;
  }
  const auto continues = [&](std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
  };
  while (bytes != 0 && continues(bytes)) {
    --bytes;
  }
  return bytes;
}

// Takes the text's size from `left`.
void shorten(std::string& text, std::size_t& left) {
  const std::size_t kept = fitting(text, std::min(largestText, left));
  if (kept < text.size()) {
    text = text.substr(0, kept) + " (" + std::to_string(text.size() - kept) + " more bytes)";
  }
  std::size_t used = 0;
  for (const char each : text) {
    used += sizeInJson(each);
  }
  left -= std::min(left, used);
}

}  // namespace

void boundTexts(VerifyReport& report) {
  std::size_t left = largestSum;
  for (Finding& finding : report.findings) {
    for (std::string* text :
         {&finding.subject, &finding.expected, &finding.seen, &finding.remedy}) {
      shorten(*text, left);
    }
  }
}

}  // namespace vfpass::report
