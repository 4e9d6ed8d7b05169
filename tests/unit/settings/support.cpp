#include "support.hpp"

#include <algorithm>
#include <array>

#include "hosts/topology_builder.hpp"
#include "vfpass/domain/read_domain_facts.hpp"

namespace vfpass::settings {
namespace {

constexpr std::uint64_t mib = 1ULL << 20U;

std::string bus(unsigned number) {
  constexpr std::string_view digits = "0123456789abcdef";
  return std::string("0000:") + digits[number >> 4U & 0xfU] + digits[number & 0xfU];
}

PciAddress gpuAddress(unsigned rail) { return *parsePciAddress(bus(0x10 * (rail + 1)) + ":00.0"); }

PciAddress pfAddress(unsigned rail) {
  return *parsePciAddress(bus(0x10 * (rail + 1) + 1) + ":00.0");
}

}  // namespace

TestHost::TestHost(std::uint64_t barBytes) {
  hosts::TopologyBuilder host;
  const std::array bridges{host.hostBridge("pci0000:00", 0), host.hostBridge("pci0000:01", 1)};
  for (unsigned rail = 0; rail < 8; ++rail) {
    const auto bridge = bridges.at(rail / 4);
    const unsigned first = 0x10 * (rail + 1);
    const auto port = host.function(FunctionRole::rootPort, bus(first + 2) + ":00.0", bridge);
    const auto up =
        host.function(FunctionRole::upstreamPort, bus(first + 3) + ":00.0", bridge, port);
    const auto one =
        host.function(FunctionRole::downstreamPort, bus(first + 4) + ":00.0", bridge, up);
    const auto two =
        host.function(FunctionRole::downstreamPort, bus(first + 4) + ":01.0", bridge, up);
    host.gpu(toString(gpuAddress(rail)), bridge, one);
    host.pf(toString(pfAddress(rail)), "mlx5_" + std::to_string(rail), bridge, two);
    capacity.bars[gpuAddress(rail)] = {
        {16 * mib, true, true}, {barBytes, true, true}, {32 * mib, true, true}};
    capacity.vfBars[pfAddress(rail)] = {{mib, true, true}};
  }
  std::sort(host.topology.functions.begin(), host.topology.functions.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  topology = host.topology;
  topology.processors.vendor = "GenuineIntel";
  topology.processors.nodes = {{0, "00000000,00000000,ffffffff,ffffffff"},
                               {1, "ffffffff,ffffffff,00000000,00000000"}};
  capacity.addressBits = 52;
  capacity.nodes[0].bytes = capacity.nodes[1].bytes = 1024 * gib;
}

std::vector<GuestDevice> railDevices(const std::vector<unsigned>& rails) {
  std::vector<GuestDevice> devices;
  for (const unsigned rail : rails) {
    devices.push_back({"gpu" + std::to_string(rail), gpuAddress(rail)});
    devices.push_back({"rail" + std::to_string(rail), pfAddress(rail), true});
  }
  return devices;
}

std::string domainXml(unsigned vcpus, std::uint64_t bytes, const std::string& extra,
                      const std::string& inCpu) {
  const std::string kibibytes = std::to_string(bytes / 1024);
  const std::string cpu = "  <cpu mode='host-passthrough' check='none' migratable='on'";
  return "<domain type='kvm'>\n"
         "  <name>train0</name>\n"
         "  <uuid>11111111-2222-3333-4444-555555555555</uuid>\n"
         "  <memory unit='KiB'>" +
         kibibytes + "</memory>\n  <currentMemory unit='KiB'>" + kibibytes +
         "</currentMemory>\n  <vcpu placement='static'>" + std::to_string(vcpus) + "</vcpu>\n" +
         extra +
         "  <os firmware='efi'>\n"
         "    <type arch='x86_64' machine='pc-q35-7.2'>hvm</type>\n"
         "  </os>\n" +
         cpu + (inCpu.empty() ? "/>\n" : ">\n" + inCpu + "  </cpu>\n") +
         "  <devices>\n"
         "    <emulator>/usr/bin/qemu-system-x86_64</emulator>\n"
         "    <controller type='pci' index='0' model='pcie-root'/>\n"
         "  </devices>\n"
         "</domain>\n";
}

Proposal proposalFor(const TestHost& host, const std::string& xml, std::vector<GuestDevice> devices,
                     const std::set<std::string>& made) {
  return propose({host.topology,
                  host.capacity,
                  domain::readDomainFacts(xml),
                  {Version{9, 0}, Version{7, 2}},
                  std::move(devices),
                  made});
}

const DomainSetting* settingOf(const Proposal& proposal, const std::string& name) {
  const auto found =
      std::find_if(proposal.settings.begin(), proposal.settings.end(),
                   [&name](const DomainSetting& setting) { return setting.name == name; });
  return found == proposal.settings.end() ? nullptr : &*found;
}

std::string elementsOf(const Proposal& proposal, const std::string& name) {
  const DomainSetting* setting = settingOf(proposal, name);
  std::string text;
  for (const std::string& element :
       setting != nullptr && setting->edit ? setting->edit->elements : std::vector<std::string>()) {
    text += element;
  }
  return text;
}

std::vector<DomainEdit> editsOf(const Proposal& proposal) {
  std::vector<DomainEdit> edits;
  for (const DomainSetting& setting : proposal.settings) {
    if (setting.edit) {
      edits.push_back(*setting.edit);
    }
  }
  return edits;
}

}  // namespace vfpass::settings
