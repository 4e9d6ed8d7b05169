#include "schedule/host_checks.hpp"

#include <algorithm>

#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::crash {

bool HostChecks::hasItsAttributes(const Lease& lease) {
  const auto& now = world_.kernel.settings(toString(lease.pf), vfOf(lease).index);
  const auto& requested = vfOf(lease).settings;
  return now.mac == requested.mac && now.vlan == requested.vlan;
}

void HostChecks::checkStarted(const std::string& vm) {
  const auto started = domain::parseDomain(world_.domain(vm).liveXml);
  for (const auto& other : world_.hypervisor.domains) {
    if (other.name == vm || !other.active) {
      continue;
    }
    for (const auto& theirs : domain::parseDomain(other.liveXml).claims) {
      for (const auto& claim : started.claims) {
        if (theirs.device == claim.device) {
          fault("two users: " + toString(claim.device) + " of " + vm + " and " + other.name);
        }
      }
    }
  }
  for (const auto& lease : started.leases) {
    if (isVf(lease) && !hasItsAttributes(lease)) {
      fault("wrong attributes: " + vm + " starts with other ones of " + lease.entry);
    }
  }
}

void HostChecks::checkRunning(const std::set<std::string>& inHook) {
  for (const auto& domain : world_.hypervisor.domains) {
    if (!domain.active || inHook.contains(domain.name)) {
      continue;
    }
    const auto running = domain::parseDomain(domain.liveXml);
    for (const auto& claim : running.claims) {
      const std::string device = toString(claim.device);
      if (world_.files.driverOf(device) != "vfio-pci") {
        if (reported_.insert(device).second) {
          fault("taken: " + device + " from the running " + domain.name);
        }
        continue;
      }
      const auto lease = std::find_if(
          running.leases.begin(), running.leases.end(),
          [&](const Lease& each) { return isVf(each) && each.device == claim.device; });
      if (lease != running.leases.end() && !hasItsAttributes(*lease) &&
          reported_.insert("attributes of " + device).second) {
        fault("changed: MAC or VLAN of " + device + " of the running " + domain.name);
      }
    }
  }
}

// Reading needs a copy of the database, which takes longer than everything else here.
const Records& HostChecks::records() {
  if (!records_) {
    records_ = recordsIn(world_);
  }
  return *records_;
}

void HostChecks::checkLeases() {
  if (records_) {
    return;
  }
  std::set<PciAddress> leased;
  for (const auto& lease : records().leases) {
    if (lease.generation > records().lastGeneration) {
      fault("generation: " + std::to_string(lease.generation) + " of a lease comes again");
    }
    if (!leased.insert(lease.device).second) {
      fault("two leases: of " + toString(lease.device));
    }
  }
}

void HostChecks::expectSuccess(const Result& result, const std::string& what) {
  if (result.code != 0) {
    fault(what + " fails at the end: " + result.output);
  }
}

Result HostChecks::vfpass(const std::vector<std::string>& words) {
  databaseChanged();
  return world_.vfpass(words);
}

void HostChecks::recover() {
  expectSuccess(vfpass({"recover"}), "recover");
  if (records().openOperations != 0) {
    fault("an operation stays open");
  }
}

void HostChecks::checkPromise(const Promise& promise) {
  const auto& definition = world_.domain(promise.vm).persistentXml;
  const bool hasDevices = !domain::parseDomain(definition).leases.empty();
  const auto& leases = records().leases;
  const bool hasLeases = std::any_of(leases.begin(), leases.end(), [&](const Lease& lease) {
    return lease.domainName == promise.vm && lease.persistent;
  });
  if (hasDevices != promise.attached || hasLeases != promise.attached) {
    fault("undone: the last " + std::string(promise.attached ? "attach" : "detach") + " of " +
          promise.vm + " succeeded, but devices in the XML: " + (hasDevices ? "yes" : "no") +
          ", leases: " + (hasLeases ? "yes" : "no"));
  }
}

void HostChecks::checkEnd(const std::vector<Promise>& promises, bool rebooted) {
  recover();
  for (const auto& promise : promises) {
    checkPromise(promise);
  }
  const std::string recovered = fingerprint(world_, records());
  if (recovered.find("INCONSISTENT") != std::string::npos) {
    fault("a definition contradicts the leases:\n" + recovered);
  }
  bool stopped = false;
  for (const auto& domain : world_.hypervisor.domains) {
    if (domain.active) {
      databaseChanged();
      expectSuccess(world_.stop(domain.name), "stop");
      stopped = true;
    }
  }
  if (stopped) {
    recover();
  }
  for (const auto& vm : host_.vms) {
    if (recovered.find("lease " + vm + ' ') != std::string::npos ||
        recovered.find("definition " + vm + " managed") != std::string::npos) {
      expectSuccess(vfpass({"detach", vm}), "detach");
    }
  }
  const std::string& before = rebooted ? host_.rebootedState : host_.state;
  const std::string after = fingerprint(world_, records());
  if (after != before) {
    fault("not restored: detaching all VMs leaves\n" + difference(after, before));
  }
}

}  // namespace vfpass::crash
