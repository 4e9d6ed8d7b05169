#include "rdma_counters.hpp"

#include <algorithm>

namespace vfpass::commands {
namespace {

// Of the probe's figures only: other tools check no bytes. The probe moves more than it checks.
std::uint64_t claimedIn(const std::vector<Figure>& figures, const std::string& entry) {
  std::uint64_t claimed = 0;
  for (const Figure& each : figures) {
    const std::uint64_t bytes = each.subject == entry ? each.checkedBytes : 0;
    claimed = bytes > UINT64_MAX - claimed ? UINT64_MAX : claimed + bytes;
  }
  return claimed;
}

std::uint64_t increase(std::uint64_t before, std::uint64_t after) {
  return after > before ? after - before : 0;
}

std::string representorOf(const Inventory& inventory, const Lease& vf) {
  const auto pf = std::ranges::find(inventory.pfs, vf.pf, &PhysicalFunction::address);
  return pf == inventory.pfs.end() || vfOf(vf).index >= pf->vfs.size()
             ? ""
             : pf->vfs[vfOf(vf).index].representor;
}

}  // namespace

Finding judgeRdmaBytes(const std::string& entry, const std::vector<Figure>& figures,
                       const std::optional<host::RdmaBytes>& before,
                       const std::optional<host::RdmaBytes>& after) {
  const std::uint64_t claimed = claimedIn(figures, entry);
  Finding finding{"rdma-counters",
                  entry,
                  Outcome::waived,
                  "the VF moves at least " + std::to_string(claimed) + " bytes by RDMA",
                  "the driver counts RDMA and Ethernet packets of a VF together: `counters` has "
                  "bytes of any kind",
                  ""};
  if (before && after) {
    const std::uint64_t moved =
        std::max(increase(before->received, after->received), increase(before->sent, after->sent));
    finding.outcome = moved >= claimed ? Outcome::passed : Outcome::warning;
    finding.seen = std::to_string(moved) + " bytes";
    finding.remedy = moved >= claimed
                         ? ""
                         : "unless the guest uses SoftRoCE, which sends Ethernet packets, do not "
                           "trust its figures: the data did not go by RDMA";
  }
  return seenByHost(finding);
}

RdmaCounters::RdmaCounters(Session& session, std::vector<Lease> vfs)
    : session_(session), vfs_(std::move(vfs)), before_(read()) {}

void RdmaCounters::judge(VerifyReport& report) const {
  const auto after = read();
  for (const Lease& vf : vfs_) {
    const bool moved = std::ranges::any_of(report.figures, [&](const Figure& each) {
      return each.subject == vf.entry && each.checkedBytes != 0;
    });
    if (moved) {
      report.findings.push_back(
          judgeRdmaBytes(vf.entry, report.figures, before_.at(vf.entry), after.at(vf.entry)));
    }
  }
}

// Without counters where the host cannot be read: never at the cost of the report.
std::map<std::string, std::optional<host::RdmaBytes>> RdmaCounters::read() const {
  std::map<std::string, std::optional<host::RdmaBytes>> counters;
  Inventory inventory;
  try {
    inventory = session_.inventory();
  } catch (const Error& error) {
    session_.warn(error.what());
  }
  for (const Lease& vf : vfs_) {
    const std::string representor = representorOf(inventory, vf);
    counters[vf.entry] = representor.empty() ? std::nullopt : host::readRdmaBytes(representor);
  }
  return counters;
}

}  // namespace vfpass::commands
