#include "operations.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/error.hpp"

namespace vfpass::hook {
namespace {

constexpr std::size_t limit = std::size_t{16} << 20U;
constexpr std::size_t longestMark = 64;  // of those that mayBeManaged() looks for

std::string tailOf(std::string_view text) {
  return std::string(text.substr(text.size() - std::min(text.size(), longestMark)));
}

// Searches in text beyond the limit, which is not kept.
class Overflow {
 public:
  explicit Overflow(std::string_view kept) : window_(tailOf(kept)) {}

  void add(std::string_view text) {
    window_ += text;
    found_ = found_ || domain::mayBeManaged(window_);
    window_ = tailOf(window_);
  }

  [[nodiscard]] bool found() const { return found_; }

 private:
  std::string window_;
  bool found_ = false;
};

std::size_t readSome(int descriptor, std::array<char, 65536>& buffer) {
  for (;;) {
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count >= 0) {
      return static_cast<std::size_t>(count);
    }
    if (errno != EINTR) {
      throw Error("cannot read the domain XML from libvirt: " + errnoText(errno));
    }
  }
}

}  // namespace

DomainInput readInput(int descriptor) {
  DomainInput input;
  std::array<char, 65536> buffer{};
  std::size_t count = 0;
  while (input.xml.size() < limit && (count = readSome(descriptor, buffer)) > 0) {
    input.xml.append(buffer.data(), count);
  }
  Overflow rest(input.xml);
  while (count > 0 && (count = readSome(descriptor, buffer)) > 0) {
    input.complete = false;
    rest.add({buffer.data(), count});
  }
  input.mayBeManaged = domain::mayBeManaged(input.xml) || rest.found();
  return input;
}

std::string errorLine(const Error& error) {
  std::string line = error.what();
  if (!error.remedy().empty()) {
    line += "; " + error.remedy();
  }
  return printableLine(line);
}

}  // namespace vfpass::hook
