#include "worst_code.hpp"

#include <algorithm>

namespace vfpass::commands {

ExitCode worstOf(const std::vector<ExitCode>& codes) {
  for (const ExitCode code : {ExitCode::badInput, ExitCode::refused, ExitCode::failed,
                              ExitCode::unproven, ExitCode::unverified, ExitCode::pending}) {
    if (std::ranges::find(codes, code) != codes.end()) {
      return code;
    }
  }
  return ExitCode::done;
}

}  // namespace vfpass::commands
