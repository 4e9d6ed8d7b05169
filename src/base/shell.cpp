#include "vfpass/base/shell.hpp"

#include <string_view>

#include "vfpass/base/text.hpp"

namespace vfpass {

std::string shellQuoted(const std::string& word) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._:@+-";
  if (!word.empty() && word.front() != '-' && word.find_first_not_of(plain) == std::string::npos) {
    return word;
  }
  std::string quoted = "'";
  for (const char letter : word) {
    quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return quoted + "'";
}

std::string shellArgument(const std::string& name) { return shellQuoted(printable(name)); }

}  // namespace vfpass
