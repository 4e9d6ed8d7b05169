#include "world/fingerprint.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>

#include "vfpass/base/text.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/plan/plan_hook.hpp"
#include "vfpass/state/database.hpp"

namespace vfpass::crash {
namespace {

namespace fs = std::filesystem;

}  // namespace

// Reads a copy of the database, because opening the original would already recover its WAL.
Records recordsIn(const World& world) {
  const fs::path copy = world.files.root().string() + "-database";
  const fs::path original = world.files.root() / "var/lib/vfpass";
  fs::remove_all(copy);
  if (fs::exists(original)) {
    fs::copy(original, copy, fs::copy_options::recursive);
  }
  state::Database database(copy, state::Database::Open::createIfMissing,
                           std::chrono::milliseconds(300));
  database.setCurrentBoot(world.bootId());
  return {database.leases(), database.softRoceRecords(), database.openOperations().size(),
          database.lastGeneration()};
}

namespace {

std::string settingsText(const VfSettings& settings) {
  std::string text;
  for (const Attribute attribute : allAttributes) {
    if (existsOn(attribute, false)) {
      text += ' ' + vfpass::describe(settings, attribute);
    }
  }
  return text;
}

std::string functionText(const HostFiles& files, const std::string& function) {
  const std::string driver = files.driverOf(function);
  return (driver.empty() ? "unbound" : driver) + ' ' +
         std::string(trim(files.read(files.directoryOf(function) + "/driver_override")));
}

void appendPf(std::ostringstream& text, const HostFiles& files, const SimulatedPf& pf,
              const std::set<std::string>& idle) {
  const std::string address = toString(pf.address);
  text << "PF " << address << " probe "
       << trim(files.read(files.directoryOf(address) + "/sriov_drivers_autoprobe")) << " mtu "
       << pf.mtu << " up " << pf.up << " switchdev " << pf.switchdev << '\n';
  for (const auto& [index, settings] : pf.vfs) {
    const std::string vf = vfAddressOf(address, index);
    text << "VF " << vf << ' ' << functionText(files, vf)
         << (idle.contains(vf) ? "" : settingsText(settings)) << '\n';
  }
}

void appendKernel(std::ostringstream& text, const World& world, const std::set<std::string>& idle) {
  for (const auto& pf : world.kernel.pfs) {
    appendPf(text, world.files, pf, idle);
  }
  for (const auto& [address, driver] : world.kernel.functions) {
    text << "function " << toString(address) << ' ' << functionText(world.files, toString(address))
         << '\n';
  }
  for (const auto& [name, device] : world.kernel.rdmaDevices) {
    text << "SoftRoCE " << name << ' ' << device.netdev << '\n';
  }
  for (const unsigned partition : world.fabric.active()) {
    text << "active partition " << partition << '\n';
  }
}

void append(std::ostringstream& text, const Lease& lease) {
  text << "lease " << lease.domainName << ' ' << lease.entry << ' ' << toString(lease.device) << ' '
       << toString(lease.state) << ' ' << (lease.persistent ? "persistent" : "live") << " original "
       << lease.original.driver << ' ' << lease.original.driverOverride << ' '
       << lease.original.created << settingsText(lease.original.settings) << '\n';
}

std::string devicesText(const std::string& xml) {
  if (xml.empty()) {
    return "none";
  }
  auto domain = domain::parseDomain(xml);
  std::string text =
      domain.managed ? "managed" : std::to_string(std::hash<std::string>{}(xml)) + " unmanaged";
  std::sort(domain.claims.begin(), domain.claims.end(),
            [](const Claim& one, const Claim& other) { return one.alias < other.alias; });
  for (const auto& claim : domain.claims) {
    text += ' ' + claim.alias + ' ' + toString(claim.device) + ' ' + toString(claim.guestAddress);
  }
  return text;
}

// The differences between the metadata of a definition and the leases.
std::string inconsistencies(const DomainDescription& domain, std::vector<Lease> leases) {
  std::erase_if(leases, [](const Lease& lease) { return !lease.persistent; });
  std::string text;
  const auto parsed = domain::parseDomain(domain.persistentXml);
  for (const auto& problem : plan::checkMetadata(domain.uuid, domain.name, parsed.leases, leases)) {
    text += " INCONSISTENT: " + problem.message;
  }
  return text;
}

std::set<std::string> idleDevices(const std::vector<Lease>& leases) {
  std::set<std::string> idle;
  for (const auto& lease : leases) {
    if (lease.state == LeaseState::reserved) {
      idle.insert(toString(lease.device));
    }
  }
  return idle;
}

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::vector<Lease> leasesIn(const World& world) { return recordsIn(world).leases; }

std::size_t openOperationsIn(const World& world) { return recordsIn(world).openOperations; }

std::string fingerprint(const World& world, FingerprintScope scope) {
  return fingerprint(world, recordsIn(world), scope);
}

std::string fingerprint(const World& world, const Records& records, FingerprintScope scope) {
  std::ostringstream text;
  const auto& leases = records.leases;
  if (scope.kernel) {
    appendKernel(text, world, scope.idleAttributes ? std::set<std::string>() : idleDevices(leases));
  }
  for (const auto& lease : leases) {
    append(text, lease);
  }
  for (const auto& record : records.softRoce) {
    if (record.bootId ==
        world.bootId()) {  // an earlier boot's link is gone, and its record is inert
      text << "SoftRoCE record " << record.name << ' ' << record.netdev << ' '
           << record.number.has_value() << '\n';
    }
  }
  for (const auto& domain : world.hypervisor.domains) {
    text << "definition " << domain.name << ' ' << devicesText(domain.persistentXml)
         << (domain.persistentXml.empty() ? "" : inconsistencies(domain, leases)) << '\n';
    text << "running " << domain.name << ' ' << devicesText(domain.liveXml) << '\n';
  }
  return text.str();
}

std::string difference(const std::string& now, const std::string& other) {
  const auto ours = linesOf(now);
  const auto theirs = linesOf(other);
  std::string text;
  const auto append = [&text](const auto& lines, const auto& rest, const char* mark) {
    for (const auto& line : lines) {
      if (std::find(rest.begin(), rest.end(), line) == rest.end()) {
        text += mark + line + '\n';
      }
    }
  };
  append(ours, theirs, "      + ");
  append(theirs, ours, "      - ");
  return text;
}

}  // namespace vfpass::crash
