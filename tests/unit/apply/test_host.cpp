#include "test_host.hpp"

#include <unistd.h>

#include <sstream>

#include "vfpass/apply/recover.hpp"
#include "vfpass/plan/hook.hpp"

namespace vfpass::apply {
namespace {

constexpr const char* domainXml = R"(<domain type='qemu'>
  <name>train0</name>
  <uuid>0f5e9a3c-1111-4222-8333-944455566677</uuid>
  <memory unit='KiB'>229376</memory>
  <os>
    <type arch='x86_64' machine='pc-q35-7.2'>hvm</type>
  </os>
  <devices>
    <controller type='pci' index='0' model='pcie-root'/>
    <graphics type='vnc' port='-1' autoport='yes' passwd='s3cret'/>
  </devices>
</domain>
)";

MappedVf mappedVf(const std::string& name, const std::string& netdev) {
  MappedVf vf;
  vf.name = name;
  vf.pf.netdev = netdev;
  vf.settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
  vf.settings.trust = false;
  vf.settings.spoofCheck = true;
  vf.required = {Attribute::mac, Attribute::vlan};
  return vf;
}

constexpr std::chrono::milliseconds patience{2000};

}  // namespace

Host::Host(unsigned vfCount) : uuid(*parseUuid("0f5e9a3c-1111-4222-8333-944455566677")) {
  std::string pattern = std::filesystem::temp_directory_path() / "vfpass-apply-XXXXXX";
  folder = mkdtemp(pattern.data());
  auto& pf = kernel.addPf("0000:01:00.0", "ens1f0np0", 8, vfCount);
  if (vfCount > 1) {
    pf.vfs[1].settings.mac = *parseMacAddress("02:00:00:00:00:07");
    pf.vfs[1].settings.vlan = Vlan{7, 3, VlanProtocol::dot1q};
  }
  hypervisor.domains.push_back({uuid, "train0", false, true, domainXml, ""});
  mapping.file = "train0.yaml";
  mapping.vm = "train0";
  mapping.vfs = {mappedVf("rail0", "ens1f0np0"), mappedVf("rail1", "ens1f0np0")};
}

Host::~Host() { std::filesystem::remove_all(folder); }

Tools Host::tools(state::Database& database) {
  Tools tools{kernel, database, &hypervisor, domain::builtInTemplates(), folder / "run"};
  tools.lockPatience = patience;
  return tools;
}

plan::AttachInput Host::attachInput(std::uint64_t generation) {
  state::Database database(folder / "state", state::Database::Open::createIfMissing, patience);
  plan::AttachInput input;
  input.mapping = mapping;
  input.inventory = kernel.inventory();
  input.domain = uuid;
  input.domainName = "train0";
  input.leases = database.leases();
  input.placements = domain::placeDevices(xml(), mapping.vfs.size() + mapping.gpus.size());
  input.xmlCurrent = domain::carriesLeases(xml(), database.leasesOf(uuid));
  input.generation = generation;
  input.bootId = kernel.bootId();
  return input;
}

Plan Host::attachPlan() {
  std::uint64_t generation = 0;
  {
    state::Database database(folder / "state", state::Database::Open::createIfMissing, patience);
    generation = database.nextGeneration();
  }
  const auto decision = plan::planAttach(attachInput(generation));
  plan::throwObjections("attach", decision.objections);
  return decision.plan;
}

Plan Host::detachPlan() {
  state::Database database(folder / "state", state::Database::Open::createIfMissing, patience);
  return plan::planDetach(uuid, "train0", database.leasesOf(uuid), database.leases(),
                          kernel.inventory(), domain::parseDomain(xml()).managed);
}

Plan Host::preparePlan() {
  state::Database database(folder / "state", state::Database::Open::createIfMissing, patience);
  const auto decision = plan::planPrepare(uuid, "train0", domain::parseDomain(xml()).leases,
                                          database.leases(), kernel.inventory(), kernel.bootId());
  plan::throwObjections("prepare", decision.objections);
  return decision.plan;
}

std::vector<std::string> Host::execute(const Plan& plan) {
  state::Database database(folder / "state", state::Database::Open::createIfMissing, patience);
  Tools runTools = tools(database);
  return run(plan, runTools, state::lockPfs(folder / "run", lockedPfs(plan), patience));
}

std::vector<std::string> Host::recoverAll() {
  state::Database database(folder / "state", state::Database::Open::createIfMissing, patience);
  Tools recoverTools = tools(database);
  return recover(recoverTools);
}

std::string Host::fingerprint() const {
  std::ostringstream text;
  for (const auto& [address, pf] : kernel.pfs) {
    text << toString(address) << " probes " << pf.probesVfs << '\n';
    for (const auto& vf : pf.vfs) {
      text << vf.index << ' ' << vf.driver << ' ' << vf.driverOverride;
      for (const Attribute attribute : allAttributes) {
        text << ' ' << describe(vf.settings, attribute);
      }
      text << '\n';
    }
  }
  for (const auto& [address, function] : kernel.functions) {
    text << toString(address) << ' ' << function.driver << ' ' << function.driverOverride << '\n';
  }
  const state::Database database(folder / "state", state::Database::Open::readOnly, patience);
  for (const auto& lease : database.leases()) {
    text << lease.vfName << ' ' << toString(lease.vf) << ' ' << toString(lease.state) << '\n';
  }
  // Generations count attempts, and are in the metadata: only what devices there are is compared.
  text << (domain::parseDomain(xml()).managed ? "managed" : xml());
  for (const auto& claim : domain::parseDomain(xml()).claims) {
    text << ' ' << claim.alias << ' ' << toString(claim.device);
  }
  return text.str();
}

}  // namespace vfpass::apply
