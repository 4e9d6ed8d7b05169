#include "meaning.hpp"

#include <concepts>
#include <sstream>

namespace vfpass::config {
namespace {

class Lines {
 public:
  void put(const std::string& name, const std::string& value) {
    if (!value.empty()) {
      text_ << indent_ << name << ": " << value << "\n";
    }
  }
  void put(const std::string& name, const std::optional<std::string>& value) {
    put(name, value.value_or(""));
  }
  void put(const std::string& name, const std::optional<unsigned>& value) {
    put(name, value ? std::to_string(*value) : std::string());
  }
  // Only for truth values, to which numbers and literals would convert.
  void put(const std::string& name, std::same_as<bool> auto value) {
    put(name, std::string(value ? "yes" : ""));
  }
  void begin(const std::string& name, const std::string& value) {
    indent_ = "";
    put(name, value);
    indent_ = "  ";
  }
  void end() { indent_ = ""; }
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::string indent_;
};

std::string namesOf(const std::set<Attribute>& attributes) {
  std::string names;
  for (const Attribute attribute : attributes) {
    names += (names.empty() ? "" : " ") + std::string(toString(attribute));
  }
  return names.empty() ? "nothing" : names;
}

void putSettings(Lines& lines, const VfSettings& settings) {
  forEachAttribute([&](const auto& row) {
    if (settings.*row.member) {
      lines.put(row.name, describe(settings, row.attribute));
    }
  });
}

void putVf(Lines& lines, const MappedVf& vf) {
  lines.begin("vf", vf.name);
  lines.put("pf", toString(vf.pf));
  lines.put("index", vf.index);
  lines.put("adopt", vf.adopt);
  putSettings(lines, vf.settings);
  lines.put("mac is automatic", vf.macAutomatic);
  lines.put("mac is kept", vf.macKept);
  lines.put("node-guid is automatic", vf.nodeGuidAutomatic);
  lines.put("port-guid is automatic", vf.portGuidAutomatic);
  if (!vf.automatic.empty()) {
    lines.put("automatic", namesOf(vf.automatic));
  }
  lines.put("required", namesOf(vf.required));
  lines.put("managed", vf.managed);
  lines.put("interface", vf.interfaceForm);
  lines.put("teaming with", vf.teamingWith);
  lines.put("migrates by vfio", vf.migrates);
  lines.put("guest address", vf.guest.address);
  lines.put("guest mtu", vf.guest.mtu);
  lines.put("guest name", vf.guest.name);
  lines.end();
}

void putFunction(Lines& lines, const MappedFunction& function) {
  lines.begin("function", function.name);
  lines.put("pci", toString(function.pci));
  lines.put("driver", function.driver);
  lines.put("clique", function.clique);
  lines.put("nvlink-module", function.nvlinkModule);
  lines.put("adopt", function.adopt);
  lines.end();
}

void putNccl(Lines& lines, const NcclSettings& nccl) {
  lines.put("nccl gid-index", nccl.gidIndex);
  lines.put("nccl traffic-class", nccl.trafficClass);
  lines.put("nccl service-level", nccl.serviceLevel);
  lines.put("nccl qps", nccl.queuePairs);
  lines.put("nccl timeout", nccl.timeout);
  for (const auto& [name, value] : nccl.environment) {
    lines.put("nccl " + name, value);
  }
}

void putVerify(Lines& lines, const VerifyPolicy& verify) {
  if (verify.gpu) {
    lines.put("verify", std::string(*verify.gpu ? "host and GPU memory" : "host memory"));
  }
  if (verify.minimumShare) {
    const auto share = static_cast<unsigned>(*verify.minimumShare * 1000 + 0.5);
    lines.put("verify minimum per mille", std::to_string(share));
  }
  lines.put("verify on start", verify.onStart);
}

}  // namespace

std::string meaningOf(const Mapping& mapping) {
  Lines lines;
  lines.put("vm", mapping.vm);
  lines.put("topology", mapping.topology);
  lines.put("spare-ports", mapping.sparePorts == 0 ? "" : std::to_string(mapping.sparePorts));
  if (mapping.nvlink) {
    lines.put("nvlink", std::string(toString(*mapping.nvlink)));
  }
  lines.put("domain-settings are applied", mapping.applyDomainSettings);
  if (mapping.iommuBackend) {
    lines.put("iommu-backend", std::string(toString(*mapping.iommuBackend)));
  }
  lines.put("link-speeds are the host's", mapping.hostLinkSpeeds);
  for (const Allowance allowance : mapping.allow) {
    lines.put("allow", std::string(toString(allowance)));
  }
  for (const MappedFunction& function : mapping.functions) {
    putFunction(lines, function);
  }
  for (const MappedVf& vf : mapping.vfs) {
    putVf(lines, vf);
  }
  putNccl(lines, mapping.nccl);
  putVerify(lines, mapping.verify);
  return lines.text();
}

std::string meaningOfHost(const Configuration& configuration) {
  Lines lines;
  for (const PfPolicy& policy : configuration.host.pfs) {
    lines.begin("pf", toString(policy.pf));
    lines.put("serial", policy.serial);
    lines.put("virtual-function-count", policy.vfCount);
    lines.put("embedded-switch-mode", policy.eswitchMode);
    lines.put("mtu", policy.mtu);
    if (policy.up) {
      lines.put("up", std::string(*policy.up ? "true" : "false"));
    }
    lines.put("probe-virtual-functions", policy.probeVfs);
    lines.put("allow-disruption", policy.allowDisruption);
    lines.end();
  }
  lines.put("gpu-memory-check", configuration.host.gpuMemoryCheck);
  for (const SoftRocePolicy& link : configuration.softRoce) {
    lines.put("soft-roce", link.name + " on " + link.netdev);
  }
  for (const AcceptedFinding& finding : configuration.accepted) {
    lines.put("accept", finding.check + " of " + finding.subject + " until " + finding.until +
                            ": " + finding.reason);
  }
  return lines.text();
}

}  // namespace vfpass::config
