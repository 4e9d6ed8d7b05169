#include "vfpass/doctor/doctor.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "check.hpp"

namespace vfpass::doctor {
namespace {

constexpr const char* notHere = "not on this host";

const Device* byName(const Topology& topology, const PfSelector& selector) {
  for (const Device& function : topology.functions) {
    const auto has = [&](const auto& devices, const std::string& name) {
      return std::ranges::any_of(devices, [&](const auto& each) { return each.name == name; });
    };
    if ((selector.netdev && has(function.netdevs, *selector.netdev)) ||
        (selector.rdma && has(function.rdma, *selector.rdma))) {
      return &function;
    }
  }
  return nullptr;
}

bool isOfCard(const Device& function, const PfSelector& selector) {
  return isPf(function) && function.serial == *selector.serial &&
         (!selector.function || function.address.function == *selector.function);
}

// Null also if several PFs of the card match, of which none is the one meant.
const Device* bySerial(const Topology& topology, const PfSelector& selector) {
  const auto matches = [&](const Device& each) { return isOfCard(each, selector); };
  const auto found = std::ranges::find_if(topology.functions, matches);
  const bool one = std::ranges::count_if(topology.functions, matches) == 1;
  return one ? &*found : nullptr;
}

// `near` has been resolved by now, or no PF matches it.
const Device* select(const Topology& topology, const PfSelector& selector) {
  if (selector.serial) {
    return bySerial(topology, selector);
  }
  return selector.pci ? findFunction(topology, *selector.pci) : byName(topology, selector);
}

std::string whyMissing(const Topology& topology, const PfSelector& selector) {
  if (selector.near) {
    return "no PF near it on this host";
  }
  const bool several = selector.serial && std::ranges::any_of(topology.functions, [&](auto& each) {
                         return isOfCard(each, selector);
                       });
  return several ? "the card has several PFs: specify `function:`" : notHere;
}

std::vector<std::string> legacyOnly(const MappedVf& vf) {
  std::vector<std::string> names;
  for (const Attribute attribute : legacyOnlyAttributes) {
    if (vf.required.contains(attribute)) {
      names.emplace_back(toString(attribute));
    }
  }
  return names;
}

void addRequirements(const Topology& topology, const Mapping& mapping, Requirements& requirements) {
  for (const MappedVf& vf : mapping.vfs) {
    const Device* pf = select(topology, vf.pf);
    if (pf == nullptr) {
      requirements.missing.push_back(
          {mapping.vm + ", " + vf.name + ": " + toString(vf.pf), whyMissing(topology, vf.pf)});
      continue;
    }
    const bool guids = vf.guidsAutomatic || vf.settings.nodeGuid || vf.settings.portGuid;
    requirements.vfs.push_back({mapping.vm, vf.name, pf->address, vf.managed, guids,
                                vf.settings.vlan.has_value(), vf.guest.mtu, legacyOnly(vf),
                                vf.teamingWith.has_value(), vf.index, vf.migrates});
  }
  for (const MappedFunction& function : mapping.functions) {
    if (findFunction(topology, function.pci) == nullptr) {
      requirements.missing.push_back(
          {mapping.vm + ", " + function.name + ": " + toString(function.pci), notHere});
    } else {
      requirements.functions.push_back(function.pci);
    }
  }
  auto nvlink = topology::judgeNvlink(topology, mapping);
  if (!nvlink.summary.empty() || !nvlink.faults.empty()) {
    requirements.nvlink.push_back({mapping.vm, std::move(nvlink)});
  }
}

// In the order of the chain.
std::array<std::span<const Check>, 14> allChecks() {
  return {cpuIommuChecks(),   sriovChecks(),           firmwareChecks(), eswitchChecks(),
          acsChecks(),        pcieLinkChecks(),        gpuChecks(),      moduleChecks(),
          rdmaChecks(),       flowControlChecks(),     libvirtChecks(),  guestChecks(),
          driverStopChecks(), competingManagerChecks()};
}

}  // namespace

std::vector<std::string> checkNames() {
  std::vector<std::string> names;
  for (const auto& area : allChecks()) {
    for (const Check& check : area) {
      names.emplace_back(check.key);
    }
  }
  return names;
}

Requirements requirementsOf(const Topology& topology, const std::vector<Mapping>& mappings,
                            const HostPolicy& policy, bool oneVm) {
  Requirements requirements;
  for (const Mapping& mapping : mappings) {
    addRequirements(topology, mapping, requirements);
  }
  // In the place of a missing device the user may choose any other one.
  requirements.oneVm = oneVm && requirements.missing.empty();
  for (const PfPolicy& entry : policy.pfs) {
    const Device* pf = select(topology, entry.pf);
    if (pf != nullptr) {
      requirements.policyPfs.push_back(pf->address);
    }
    if (pf != nullptr && entry.vfCount) {
      requirements.vfCounts[pf->address] = *entry.vfCount;
    }
    if (pf != nullptr && entry.eswitchMode) {
      requirements.eswitchModes[pf->address] = *entry.eswitchMode;
    }
  }
  return requirements;
}

void addLeases(const std::vector<Lease>& leases, Requirements& requirements) {
  std::ranges::transform(leases, std::back_inserter(requirements.leased), &Lease::pf);
  for (NvlinkRequirement& required : requirements.nvlink) {
    std::vector<Lease> own;
    std::ranges::copy_if(leases, std::back_inserter(own), [&](const Lease& lease) {
      return lease.domainName == required.vm || toString(lease.domain) == required.vm;
    });
    auto& gpus = required.judgement.partition;
    gpus = topology::withRecordedModules(std::move(gpus), own);
    required.unrecorded = std::ranges::any_of(gpus, [&](const topology::PartitionedGpu& gpu) {
      return !gpu.recorded && std::ranges::find(own, gpu.address, &Lease::device) != own.end();
    });
  }
}

Requirements requireEverything(const Topology& topology) {
  constexpr unsigned anyMtu = 1500;
  Requirements requirements;
  for (const std::size_t pf : topology::pfs(topology)) {
    requirements.vfs.push_back(
        {"", "", topology.functions[pf].address, true, true, true, anyMtu, {}, true, {}, true});
  }
  topology::NvlinkJudgement nvlink;
  for (const std::size_t gpu : topology::nvlinkBoard(topology).gpus) {
    nvlink.partition.push_back({topology.functions[gpu].address});
  }
  if (!nvlink.partition.empty()) {
    requirements.nvlink.push_back({"", std::move(nvlink)});
  }
  requirements.iommufd.push_back({"", "a VM", ""});
  for (const char* unit :
       {"vfpass-host.service", "vfpass-soft-roce.service", "vfpass-verify.path"}) {
    requirements.units.push_back({unit, ""});
  }
  return requirements;
}

std::vector<Diagnosis> examine(const host::Root& root, const Topology& topology,
                               const Requirements& requirements, const Inquiries& inquiries) {
  const View view(root, topology, requirements, inquiries);
  inquiries.onCheck("firmware-settings");  // the longest wait
  queryFirmware(view);
  std::vector<Diagnosis> found;
  for (const auto& area : allChecks()) {
    for (const Check& check : area) {
      inquiries.onCheck(check.key);
      Results results(check.key, check.why, found);
      if (const std::string reason = check.inapplicable(view); !reason.empty()) {
        results.waived(reason);
      } else {
        check.run(view, results);
      }
    }
  }
  quoteKernelLog(view, found);
  return found;
}

void Results::add(Outcome outcome, std::string subject, std::string expected, std::string seen,
                  std::string remedy) {
  into_.push_back({{std::string(key_), std::move(subject), outcome, std::move(expected),
                    std::move(seen), std::move(remedy)},
                   std::string(why_)});
}

void Results::passed(std::string subject, std::string expected, std::string seen) {
  add(Outcome::passed, std::move(subject), std::move(expected), std::move(seen), "");
}

void Results::failed(std::string subject, std::string expected, std::string seen,
                     std::string remedy) {
  add(Outcome::failed, std::move(subject), std::move(expected), std::move(seen), std::move(remedy));
}

void Results::failedIfUsed(bool used, std::string subject, std::string expected, std::string seen,
                           std::string remedy) {
  add(used ? Outcome::failed : Outcome::warning, std::move(subject), std::move(expected),
      std::move(seen) + (used ? "" : "; nothing uses this device"), std::move(remedy));
}

void Results::warned(std::string subject, std::string expected, std::string seen,
                     std::string remedy) {
  add(Outcome::warning, std::move(subject), std::move(expected), std::move(seen),
      std::move(remedy));
}

void Results::notObservable(std::string subject, std::string expected, std::string seen,
                            std::string remedy) {
  add(Outcome::notObservable, std::move(subject), std::move(expected), std::move(seen),
      std::move(remedy));
}

void Results::waived(std::string reason) { add(Outcome::waived, "", "", std::move(reason), ""); }

void Results::waived(std::string subject, std::string reason) {
  add(Outcome::waived, std::move(subject), "", std::move(reason), "");
}

std::string always(const View& /*view*/) { return {}; }

std::string withoutGpu(const View& view) { return view.gpus().empty() ? "no GPU" : ""; }

std::string withoutPf(const View& view) {
  return view.pfs().empty() ? "no NIC with SR-IOV or RDMA" : "";
}

std::string withoutRail(const View& view) {
  return view.rails().empty() ? "no GPU with a NIC" : "";
}

std::string unlessAnyPf(const View& view, bool (*isSuch)(const Device&), const char* reason) {
  const auto isSuchPf = [&](std::size_t pf) { return isSuch(view.function(pf)); };
  return std::ranges::any_of(view.pfs(), isSuchPf) ? "" : reason;
}

bool isArm(const View& view) { return view.topology().processors.architecture == "arm64"; }

bool sameCard(PciAddress one, const PciAddress& other) {
  one.function = other.function;
  return one == other;
}

namespace {

// The acceptance of this finding that lasts longest; null if no acceptance applies.
const AcceptedFinding* acceptanceOf(const Finding& finding,
                                    const std::vector<AcceptedFinding>& accepted) {
  const AcceptedFinding* best = nullptr;
  for (const AcceptedFinding& each : accepted) {
    const bool applies =
        each.check == finding.key && (each.subject.empty() || each.subject == finding.subject);
    if (applies && (best == nullptr || each.until > best->until)) {
      best = &each;
    }
  }
  return best;
}

}  // namespace

void acceptFindings(const std::vector<AcceptedFinding>& accepted, const std::string& today,
                    std::vector<Diagnosis>& diagnoses) {
  for (Diagnosis& each : diagnoses) {
    const Outcome outcome = each.finding.outcome;
    const AcceptedFinding* found = outcome == Outcome::failed || outcome == Outcome::warning
                                       ? acceptanceOf(each.finding, accepted)
                                       : nullptr;
    if (found != nullptr) {
      each.acceptance = Acceptance{found->reason, found->until, found->until < today};
    }
  }
}

}  // namespace vfpass::doctor
