#include "test_host.hpp"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "fake/seal_key.hpp"
#include "hosts/topology_builder.hpp"
#include "vfpass/apply/recover.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/plan/plan_hook.hpp"

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

// Generations count attempts and are part of the metadata: compare only the devices.
void describeXml(const std::string& xml, std::ostringstream& text) {
  if (xml.empty()) {
    text << "no XML\n";
    return;
  }
  auto parsed = domain::parseDomain(xml);
  text << (parsed.managed ? "managed" : xml);
  std::sort(parsed.claims.begin(),
            parsed.claims.end(),  // a device that is plugged again comes last
            [](const Claim& one, const Claim& other) { return one.alias < other.alias; });
  for (const auto& claim : parsed.claims) {
    text << ' ' << claim.alias << ' ' << toString(claim.device) << ' '
         << toString(claim.guestAddress);
  }
  text << '\n';
}

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

void Host::shareVectors() {
  PhysicalFunction& pf = kernel.pfs.begin()->second;
  pf.totalVfVectors = 64;
  for (VirtualFunction& vf : pf.vfs) {
    vf.settings.msixVectors = 8;
  }
  mapping.vfs[0].settings.msixVectors = 5;
  mapping.vfs[0].required.insert(Attribute::msixVectors);
}

Host::~Host() { std::filesystem::remove_all(folder); }

Tools Host::tools(state::Database& database) {
  Tools tools{kernel, database, &hypervisor, domain::builtInTemplates(), key, folder / "run"};
  tools.makeSealKey = makeSealKey;
  tools.checkpoint = checkpoint;
  tools.readDefinitions = readDefinitions;
  tools.lockTimeout = databaseTimeout;
  tools.holderTimeout = std::chrono::milliseconds(300);
  return tools;
}

plan::AttachInput Host::attachInput(std::uint64_t generation) {
  state::Database database(folder / "state", state::Database::Open::createIfMissing,
                           databaseTimeout);
  plan::AttachInput input;
  input.mapping = mapping;
  input.policy.pfs.emplace_back();  // some VFs are spare
  input.policy.pfs.back().pf.netdev = "ens1f0np0";
  input.policy.pfs.back().vfCount = 8;
  input.inventory = kernel.inventory();
  input.domain = uuid;
  input.domainName = "train0";
  input.leases = database.leases();
  input.scope = scope;
  const auto& domain = hypervisor.domains[0];
  input.active = domain.active;
  if (domain.active) {
    input.plugged = plugged();
    input.liveLeases = domain::parseDomain(domain.liveXml).leases;
    input.liveCurrent =
        domain::sealFault(domain::parseDomain(domain.liveXml), fake::sealKey()).empty();
    for (const auto& lease : input.leases) {
      if (domain::fitsRunning(domain.liveXml, lease.guest)) {
        input.pluggable.insert(lease.entry);
      }
    }
  }
  input.topology = topology;
  if (!kernel.partitions.empty()) {
    input.partitions = kernel.partitions;
    input.fabricClient = true;
  }
  input.placements =
      scope.live ? domain::placeInRunning(domain.liveXml, scope.config ? xml() : "")
                 : domain::placeDevices(xml(), mapping.vfs.size() + mapping.functions.size());
  std::vector<Lease> persistent = database.leasesOf(uuid);
  std::erase_if(persistent, [](const Lease& lease) { return !lease.persistent; });
  input.xmlCurrent = xml().empty() || domain::carriesLeases(xml(), persistent, fake::sealKey());
  input.generation = generation;
  input.bootId = kernel.bootId();
  return input;
}

Plan Host::attachPlan() {
  std::uint64_t generation = 0;
  {
    state::Database database(folder / "state", state::Database::Open::createIfMissing,
                             databaseTimeout);
    generation = database.nextGeneration();
  }
  const auto decision = plan::planAttach(attachInput(generation));
  plan::throwObjections("attach", decision.objections);
  return decision.plan;
}

Plan Host::detachPlan() {
  state::Database database(folder / "state", state::Database::Open::createIfMissing,
                           databaseTimeout);
  plan::DetachInput input;
  input.domain = uuid;
  input.domainName = "train0";
  input.scope = scope;
  input.leases = database.leases();
  input.inventory = kernel.inventory();
  input.xmlIsOurs = !xml().empty() && domain::parseDomain(xml()).managed;
  if (hypervisor.domains[0].active) {
    input.plugged = plugged();
    input.liveLeases = domain::parseDomain(hypervisor.domains[0].liveXml).leases;
  }
  return plan::planDetach(input);
}

void Host::start(bool persistent) {
  constexpr const char* ports = R"(
    <controller type='pci' index='5' model='pcie-root-port'>
      <address type='pci' domain='0x0000' bus='0x00' slot='0x10' function='0x0'/>
    </controller>
    <controller type='pci' index='6' model='pcie-root-port'>
      <address type='pci' domain='0x0000' bus='0x00' slot='0x11' function='0x0'/>
    </controller>
  </devices>)";
  auto& domain = hypervisor.domains[0];
  const std::string end = "\n  </devices>";
  if (domain.persistentXml.text().find("index='5'") == std::string::npos) {
    domain.persistentXml.text().replace(domain.persistentXml.text().find(end), end.size(), ports);
  }
  domain.liveXml = domain.persistentXml;
  hypervisor.normalizeLive(domain);
  domain.active = true;
  domain.persistent = persistent;
  if (!persistent) {
    domain.persistentXml = {};
  }
}

void Host::startWithHook() {
  execute(preparePlan());
  setLeases(LeaseState::running);
  for (const Lease& lease : leases()) {
    kernel.holders.push_back(
        {HolderKind::vfio, lease.device, "QEMU of the domain", "stop it", uuid});
  }
  auto& domain = hypervisor.domains[0];
  domain.liveXml = domain.persistentXml;
  hypervisor.normalizeLive(domain);
  domain.active = true;
}

void Host::setLeases(LeaseState wanted) {
  state::Database database(folder / "state", state::Database::Open::createIfMissing,
                           databaseTimeout);
  for (const Lease& lease : database.leases()) {
    database.setLeaseState(lease.domain, lease.entry, lease.generation, wanted, kernel.bootId());
  }
}

void Host::stop() {
  auto& domain = hypervisor.domains[0];
  domain.active = false;
  domain.liveXml = {};
  execute(plan::planRelease(uuid, "train0", leases(), kernel.inventory(), kernel.bootId()));
}

std::set<std::string> Host::plugged() const {
  return domain::devicesOfOurs(hypervisor.domains[0].liveXml);
}

std::vector<Lease> Host::leases() const {
  return state::Database(folder / "state", state::Database::Open::readOnly, databaseTimeout)
      .leases();
}

Plan Host::preparePlan() {
  state::Database database(folder / "state", state::Database::Open::createIfMissing,
                           databaseTimeout);
  const auto decision = plan::planPrepare(uuid, "train0", domain::parseDomain(xml()).leases,
                                          database.leases(), kernel.inventory(), kernel.bootId());
  plan::throwObjections("prepare", decision.objections);
  return decision.plan;
}

std::vector<std::string> Host::execute(const Plan& plan) {
  state::Database database(folder / "state", state::Database::Open::createIfMissing,
                           databaseTimeout);
  Tools runTools = tools(database);
  return run(plan, runTools, state::lockPfs(folder / "run", lockedPfs(plan), databaseTimeout));
}

std::vector<std::string> Host::recoverAll() {
  state::Database database(folder / "state", state::Database::Open::createIfMissing,
                           databaseTimeout);
  Tools recoverTools = tools(database);
  const auto recovered = recover(recoverTools);
  recoveryWarnings = recovered.warnings;
  throwUnrecovered(recovered.unrecovered);
  std::vector<std::string> lines;
  for (const auto& operation : recovered.done) {
    lines.push_back(operation.line);
  }
  return lines;
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
  const state::Database database(folder / "state", state::Database::Open::readOnly,
                                 databaseTimeout);
  for (const auto& lease : database.leases()) {
    text << lease.entry << ' ' << toString(lease.device) << ' ' << toString(lease.state) << '\n';
  }
  describeXml(xml(), text);
  describeXml(hypervisor.domains[0].liveXml.text(), text);
  return text.str();
}

void shareNvlink(Host& host, const PciAddress& gpu) {
  hosts::TopologyBuilder builder;
  const auto bridge = builder.hostBridge("pci0000:00", 0);
  builder.gpu(toString(gpu), bridge);
  const auto nvswitch = builder.function(FunctionRole::nvswitch, "0000:7f:00.0", bridge);
  builder.topology.functions[nvswitch].driver = "nvidia-nvswitch";
  host.topology = builder.topology;
  host.mapping.nvlink = NvlinkMode::partition;
  host.mapping.functions.at(0).nvlinkModule = 1;
  host.kernel.partitions = {{0, false, {{1, {}}, {2, {}}}}, {1, false, {{1, {}}}}};
}

}  // namespace vfpass::apply
