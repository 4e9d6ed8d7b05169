#include <algorithm>

#include "verification_steps.hpp"
#include "vfpass/report/verify_report.hpp"
#include "vfpass/state/verification_records.hpp"

namespace vfpass::commands {
namespace {

// Figures of another peer say nothing about this one.
std::vector<Figure> lastNcclRun(Session& session, const DomainDescription& domain,
                                const std::string& peerName) {
  for (const auto& kept : state::keptReports(session.options().stateDirectory, domain.uuid)) {
    const auto saved = report::readVerification(kept.text);
    if (!saved || saved->report.peerName != peerName) {
      continue;
    }
    std::vector<Figure> figures = saved->report.figures;
    std::erase_if(figures, [](const Figure& each) { return each.source != verify::ncclFigures; });
    if (!figures.empty()) {
      return figures;
    }
  }
  return {};
}

// `-b 8 -e 8G -f 2` of the OKE document's command, and the size of its table above that.
std::vector<std::uint64_t> allNcclSizes() {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = 8; bytes <= std::uint64_t{8} << 30U; bytes *= 2) {
    sizes.push_back(bytes);
  }
  sizes.push_back(std::uint64_t{10} << 30U);
  return sizes;
}

}  // namespace

void addNccl(Session& session, const DomainDescription& domain, const VerifyRequest& request,
             const std::vector<verify::PairGuest>& guests, const agent::ProbeFile& probe,
             const verify::VerifyPlan& plan, const std::string& peerName, VerifyReport& report) {
  if (!request.nccl) {
    return;
  }
  verify::NcclTest test;
  test.lastRun = lastNcclRun(session, domain, peerName);
  if (request.sizes) {
    test.sizes = allNcclSizes();
  }
  verify::verifyNccl(guests, probe, plan, test, watchOf(session), report);
}

}  // namespace vfpass::commands
