#include "rdma_counters.hpp"

#include <algorithm>

#include "vfpass/host/device_statistics.hpp"

namespace vfpass::commands {
namespace {

// Of the probe's figures only: other tools check no bytes. The probe moves more than it checks.
template <typename IsOwn>
std::uint64_t claimedIn(const std::vector<Figure>& figures, const IsOwn& isOwn) {
  std::uint64_t claimed = 0;
  for (const Figure& each : figures) {
    const std::uint64_t bytes = isOwn(each.subject) ? each.checkedBytes : 0;
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

RdmaClaim claimInLoopback(const std::string& entry, const std::vector<Figure>& figures) {
  return {entry, claimedIn(figures, [&](const std::string& each) { return each == entry; })};
}

// `rail0 - train1:rail1`
RdmaClaim claimOfPairs(const std::string& prefix, const std::string& entry,
                       const std::vector<Figure>& figures) {
  const auto isOwn = [&](const std::string& subject) {
    return prefix.empty() ? subject.starts_with(entry + " - ")
                          : subject.ends_with(" - " + prefix + entry);
  };
  return {prefix + entry, claimedIn(figures, isOwn), true};
}

Finding judgeRdmaBytes(const RdmaClaim& claim, const std::optional<VfTraffic>& before,
                       const std::optional<VfTraffic>& after) {
  Finding finding{"rdma-counters",
                  claim.subject,
                  Outcome::waived,
                  "the VF moves at least " + std::to_string(claim.bytes) + " bytes by RDMA",
                  "the driver counts RDMA and Ethernet packets of a VF together: `counters` has "
                  "bytes of any kind",
                  ""};
  if (before && after) {
    const auto received = increase(before->receivedBytes, after->receivedBytes);
    const auto sent = increase(before->sentBytes, after->sentBytes);
    const auto moved = claim.eitherDirection ? received + sent : std::max(received, sent);
    finding.outcome = moved >= claim.bytes ? Outcome::passed : Outcome::warning;
    finding.seen = std::to_string(moved) + " bytes";
    finding.remedy = moved >= claim.bytes
                         ? ""
                         : "unless the guest uses SoftRoCE, which sends Ethernet packets, do not "
                           "trust its figures: the data did not go by RDMA";
  }
  return seenByHost(finding);
}

// Without counters where the host cannot be read: never at the cost of the report.
verify::ReadTraffic rdmaReader(Session& session, const std::vector<Lease>& vfs) {
  Inventory inventory;
  try {
    inventory = session.inventory();
  } catch (const Error& error) {
    session.warn(withRemedy(error));
  }
  std::map<std::string, std::string> representors;
  for (const Lease& vf : vfs) {
    representors[vf.entry] = representorOf(inventory, vf);
  }
  return [representors](const Lease& vf) -> std::optional<VfTraffic> {
    const auto found = representors.find(vf.entry);
    const auto bytes = found == representors.end() || found->second.empty()
                           ? std::nullopt
                           : host::readRdmaBytes(found->second);
    return bytes ? std::optional(VfTraffic{bytes->received, bytes->sent, 0, 0}) : std::nullopt;
  };
}

RdmaCounters::RdmaCounters(std::vector<Lease> vfs, verify::ReadTraffic read)
    : vfs_(std::move(vfs)), read_(std::move(read)) {
  for (const Lease& vf : vfs_) {
    before_[vf.entry] = of(vf);
  }
}

std::optional<VfTraffic> RdmaCounters::of(const Lease& vf) const {
  return read_ ? read_(vf) : std::nullopt;
}

void RdmaCounters::judge(VerifyReport& report) const {
  for (const Lease& vf : vfs_) {
    judgeClaim(vf, claimInLoopback(vf.entry, report.figures), report);
  }
}

void RdmaCounters::judgePairs(const std::string& prefix, VerifyReport& report) const {
  for (const Lease& vf : vfs_) {
    judgeClaim(vf, claimOfPairs(prefix, vf.entry, report.figures), report);
  }
}

void RdmaCounters::judgeClaim(const Lease& vf, const RdmaClaim& claim, VerifyReport& report) const {
  if (claim.bytes != 0) {
    report.findings.push_back(judgeRdmaBytes(claim, before_.at(vf.entry), of(vf)));
  }
}

}  // namespace vfpass::commands
