#include "vfpass/plan/objection.hpp"

#include <algorithm>

#include "vfpass/base/text.hpp"

namespace vfpass::plan {

void append(std::vector<Objection> found, std::vector<Objection>& objections) {
  std::ranges::move(found, std::back_inserter(objections));
}

ExitCode worstCode(const std::vector<Objection>& objections) {
  const auto has = [&](ExitCode code) {
    return std::ranges::any_of(objections,
                               [&](const Objection& objection) { return objection.code == code; });
  };
  for (const ExitCode code : {ExitCode::badInput, ExitCode::refused, ExitCode::failed}) {
    if (has(code)) {
      return code;
    }
  }
  return ExitCode::done;
}

void throwObjections(const std::string& subject, const std::vector<Objection>& objections) {
  if (objections.empty()) {
    return;
  }
  if (objections.size() == 1) {
    throw Error(subject + ": " + objections[0].message, objections[0].remedy, objections[0].code);
  }
  std::vector<std::string> lines;
  for (const auto& objection : objections) {
    lines.push_back(objection.message + (objection.remedy.empty() ? "" : "; " + objection.remedy));
  }
  throw Error(
      subject + ": " + std::to_string(objections.size()) + " problems:\n  " + join(lines, "\n  "),
      {}, worstCode(objections));
}

}  // namespace vfpass::plan
