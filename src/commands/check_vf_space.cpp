#include "check_vf_space.hpp"

#include <algorithm>
#include <variant>

#include "vfpass/base/text.hpp"
#include "vfpass/host/vf_space.hpp"

namespace vfpass::commands {
namespace {

std::vector<std::string> kernelArguments(const host::Root& root) {
  std::string text = root.readText("proc/cmdline").value_or("");
  std::ranges::replace(text, ' ', '\n');
  return splitLines(text);
}

}  // namespace

std::vector<plan::Objection> checkVfSpace(Session& session, const Plan& plan) {
  std::vector<plan::Objection> objections;
  for (const Step& step : plan.steps) {
    const auto* creation = std::get_if<CreateVfs>(&step.action);
    if (creation == nullptr) {
      continue;
    }
    const host::Root root = session.root();
    const PhysicalFunction pf = session.kernel().readPf(creation->pf);
    const host::VfSpace space = host::readVfSpace(root, pf);
    const std::string missing = host::missingVfSpace(space, creation->count);
    if (pf.vfs.empty() && !missing.empty()) {
      objections.push_back({"PF " + toString(pf.address) + ": cannot create " +
                                std::to_string(creation->count) + " VFs: " + missing,
                            host::vfSpaceRemedy(space, kernelArguments(root)), ExitCode::failed});
    }
  }
  return objections;
}

}  // namespace vfpass::commands
