#include "error_line.hpp"

#include "vfpass/base/text.hpp"

namespace vfpass::hook {

std::string errorLine(const Error& error) {
  std::string line = error.what();
  if (!error.remedy().empty()) {
    line += "; " + error.remedy();
  }
  return printableLine(line);
}

}  // namespace vfpass::hook
