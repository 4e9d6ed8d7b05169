#include "cases/case.hpp"

#include <algorithm>
#include <iostream>
#include <stdexcept>

#include "scenarios/sample_host.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {

Case::Case(const std::filesystem::path& scratch) : world(scratch / "host"), scratch_(scratch) {}

Result Case::show(const std::string& command, Result result) {
  std::cout << "$ " << command << "\n  -> "
            << (result.signal != 0 ? "killed before: " + result.faulted
                                   : "exit status " + std::to_string(result.code))
            << '\n'
            << result.output << std::flush;
  return result;
}

Result Case::run(const std::vector<std::string>& words, const Fault& fault) {
  std::string command = "vfpass";
  for (const auto& word : words) {
    command += ' ' + word;
  }
  return show(command, world.vfpass(words, fault));
}

Result Case::start(const std::string& vm) { return show("virsh start " + vm, world.start(vm)); }
Result Case::stop(const std::string& vm) { return show("virsh destroy " + vm, world.stop(vm)); }

void Case::expect(bool holds, const std::string& what) {
  if (!holds) {
    failed_ = true;
    std::cout << "FAILED: " << what << "\nstate:\n" << state() << std::flush;
  }
}

void Case::expectSuccess(const Result& result) { expect(result.code == 0, "exit status 0"); }

void Case::expectRefusal(const Result& result, const std::string& text) {
  expect(result.code > 0 && result.output.find(text) != std::string::npos,
         "a refusal that names: " + text);
}

void Case::expectState(const std::vector<std::string>& allowed) {
  expect(openOperationsIn(world) == 0, "no open operation");
  const std::string now = state();
  if (std::find(allowed.begin(), allowed.end(), now) != allowed.end()) {
    return;
  }
  for (const auto& other : allowed) {
    std::cout << "difference to an expected state:\n" << difference(now, other);
  }
  expect(false, "an expected state");
}

void Case::expectConsistent() {
  expect(openOperationsIn(world) == 0, "no open operation");
  expect(state().find("INCONSISTENT") == std::string::npos, "leases agree with the definitions");
}

std::string Case::state() const { return fingerprint(world); }

std::string Case::stateAfter(const std::vector<std::vector<std::string>>& commands) {
  World other(world, scratch_ / "undisturbed");
  for (const auto& words : commands) {
    require(other.vfpass(words), words.front());
  }
  return fingerprint(other);
}

Fault libvirtFault(FaultMode mode, long at) { return {mode, ChangeClass::libvirt, EIO, 0, at}; }

Fault killBeforeDefine() { return libvirtFault(FaultMode::kill, 1); }

Fault kernelFault(FaultMode mode, long at, int error) {
  return {mode, ChangeClass::kernel, error, 0, at};
}

Lease onlyLease(const World& world, const std::string& vm) {
  std::vector<Lease> leases = leasesIn(world);
  std::erase_if(leases, [&](const Lease& lease) { return lease.domainName != vm; });
  if (leases.size() != 1) {
    throw std::runtime_error(vm + " has " + std::to_string(leases.size()) + " leases");
  }
  return leases.front();
}

bool guestKeepsItsVf(World& world, const std::string& vm, unsigned vlan) {
  if (!world.domain(vm).active) {
    return true;
  }
  const auto claims = domain::parseDomain(world.domain(vm).liveXml).claims;
  return std::all_of(claims.begin(), claims.end(), [&](const Claim& claim) {
    const std::string device = toString(claim.device);
    const auto& vfs = world.kernel.findPf(firstPf)->vfs;
    const auto vf = std::find_if(vfs.begin(), vfs.end(), [&](const auto& each) {
      return vfAddressOf(firstPf, each.first) == device;
    });
    return vf != vfs.end() && world.files.driverOf(device) == "vfio-pci" && vf->second.vlan &&
           vf->second.vlan->id == vlan;
  });
}

}  // namespace vfpass::crash
