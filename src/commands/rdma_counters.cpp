#include "rdma_counters.hpp"

#include <algorithm>

#include "guest_devices.hpp"
#include "subject.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/host/device_statistics.hpp"

namespace vfpass::commands {
namespace {

// Of the probe's figures only: other tools check no bytes. The probe moves more than it checks.
template <typename IsCounted>
std::uint64_t claimedIn(const std::vector<Figure>& figures, const IsCounted& isCounted) {
  std::uint64_t claimed = 0;
  for (const Figure& each : figures) {
    const std::uint64_t bytes = isCounted(each) ? each.checkedBytes : 0;
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
  const std::uint64_t claimed =
      claimedIn(figures, [&](const Figure& each) { return each.subject == entry; });
  return {entry, claimed, claimed, true};
}

// `rail0 - train1:rail1`. Of messages (`send`), both ends send some.
RdmaClaim claimOfPairs(const std::string& prefix, const std::string& entry,
                       const std::vector<Figure>& figures) {
  const bool initiates = prefix.empty();
  const auto claimed = [&](const std::string& operation) {
    return claimedIn(figures, [&](const Figure& each) {
      return each.operation == operation &&
             (initiates ? each.subject.starts_with(entry + " - ")
                        : each.subject.ends_with(" - " + prefix + entry));
    });
  };
  const std::uint64_t written = claimed("write");
  const std::uint64_t read = claimed("read");
  return {prefix + entry, initiates ? written : read, initiates ? read : written};
}

namespace {

bool covers(std::uint64_t sent, std::uint64_t received, const RdmaClaim& claim) {
  return claim.isLoopback ? std::max(sent, received) >= claim.sent
                          : sent >= claim.sent && received >= claim.received;
}

std::string bytesText(std::uint64_t sent, std::uint64_t received, const RdmaClaim& claim) {
  return claim.isLoopback ? std::to_string(std::max(sent, received)) + " bytes"
                          : std::to_string(sent) + " bytes sent and " + std::to_string(received) +
                                " bytes received";
}

}  // namespace

Finding judgeRdmaBytes(const RdmaClaim& claim, const std::optional<VfTraffic>& before,
                       const std::optional<VfTraffic>& after) {
  Finding finding{
      "rdma-counters",
      claim.subject,
      Outcome::waived,
      "the VF moves at least " + bytesText(claim.sent, claim.received, claim) + " by RDMA",
      "the driver counts RDMA and Ethernet packets of a VF together: `counters` has "
      "bytes of any kind",
      ""};
  if (before && after) {
    const auto received = increase(before->receivedBytes, after->receivedBytes);
    const auto sent = increase(before->sentBytes, after->sentBytes);
    const bool enough = covers(sent, received, claim);
    finding.outcome = enough ? Outcome::passed : Outcome::warning;
    finding.seen = bytesText(sent, received, claim);
    finding.remedy = enough ? ""
                            : "unless the guest uses SoftRoCE, which sends Ethernet packets, do "
                              "not trust its figures: the data did not go by RDMA";
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
  if (claim.sent != 0 || claim.received != 0) {
    report.findings.push_back(judgeRdmaBytes(claim, before_.at(vf.entry), of(vf)));
  }
}

}  // namespace vfpass::commands
