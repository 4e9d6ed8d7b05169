// What has to hold during a round of Stress, and after it.
#include "stress/stress.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/state/database.hpp"
#include "world/fingerprint.hpp"

namespace vfpass::crash {

void Stress::fault(const std::string& text) {
  faults_.push_back(text);
  log_.push_back("FAULT " + text);
}

// A domain that starts has VFs that no other domain has, with the attributes of its leases.
void Stress::checkStarted(const std::string& vm) {
  const auto started = domain::parseDomain(world_.domain(vm).liveXml);
  for (const auto& claim : started.claims) {
    for (const auto& other : world_.hypervisor.domains) {
      if (other.name == vm || !other.active) {
        continue;
      }
      for (const auto& theirs : domain::parseDomain(other.liveXml).claims) {
        if (theirs.device == claim.device) {
          fault(toString(claim.device) + " is in use by " + vm + " and " + other.name);
        }
      }
    }
  }
  for (const auto& lease : started.leases) {
    const auto& now = world_.kernel.settings(toString(lease.pf), vfOf(lease).index);
    const auto& requested = vfOf(lease).settings;
    if (now.mac != requested.mac || now.vlan != requested.vlan) {
      fault(vm + " starts with wrong attributes of " + lease.entry);
    }
  }
}

void Stress::checkRunningDomains() {
  for (const auto& domain : world_.hypervisor.domains) {
    if (!domain.active || locked_.contains(domain.name)) {
      continue;
    }
    for (const auto& claim : domain::parseDomain(domain.liveXml).claims) {
      const std::string device = toString(claim.device);
      if (world_.files.driverOf(device) != "vfio-pci" && reported_.insert(device).second) {
        fault(device + " was unbound from vfio-pci while " + domain.name + " used it");
      }
    }
  }
}

void Stress::checkLeases() {
  try {
    const state::Database database(world_.files.root() / "var/lib/vfpass",
                                   state::Database::Open::readOnly, std::chrono::milliseconds(200));
    const auto generation = database.lastGeneration();
    if (generation < lastGeneration_) {
      fault("the generation decreased to " + std::to_string(generation));
    }
    lastGeneration_ = generation;
    std::set<std::string> leased;
    for (const auto& lease : database.leases()) {
      if (!leased.insert(toString(lease.vf)).second) {
        fault("two leases of " + toString(lease.vf));
      }
    }
  } catch (const Error&) {
    ++counts_["reads of the database that failed"];  // it is being opened after a kill
  }
}

void Stress::expectSuccess(const Result& result, const std::string& what) {
  if (result.code != 0) {
    fault(what + " at the end: " + result.output);
  }
}

// All is recoverable and reversible.
void Stress::checkEnd(const std::string& before) {
  expectSuccess(world_.vfpass({"recover"}), "recover");
  if (openOperationsIn(world_) != 0) {
    fault("an operation stays open");
  }
  if (fingerprint(world_).find("INCONSISTENT") != std::string::npos) {
    fault("a definition contradicts the leases:\n" + fingerprint(world_));
  }
  for (const auto& domain : world_.hypervisor.domains) {
    if (domain.active) {
      expectSuccess(world_.stop(domain.name), "stop");
    }
  }
  expectSuccess(world_.vfpass({"recover"}), "second recover");
  for (const auto& domain : world_.hypervisor.domains) {
    const Result detached = world_.vfpass({"detach", domain.name});
    if (detached.output.find("no domain and no lease") == std::string::npos) {
      expectSuccess(detached, "detach");
    }
  }
  const std::string after = fingerprint(world_);
  if (after != before) {
    fault("detaching all VMs did not restore the host:\n" + difference(after, before));
  }
}

}  // namespace vfpass::crash
