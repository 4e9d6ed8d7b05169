// The readers of libvirt's XML that plans and settings depend on.
// covers: src/domain/read_domain_facts.cpp src/domain/parse_domain.cpp
// src/domain/document.cpp src/domain/read_hand_made.cpp src/domain/qemu_arguments.cpp
// -hasOurDevices -requireKnownClaims -leadingUuid -addText -addAttributes -addElement
// -canonicalElement -writePart -writePciAddress -setAttribute
#include <algorithm>

#include "fuzz/target.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/read_domain_facts.hpp"

namespace vfpass::fuzz {
namespace {

const std::vector<DomainEdit> edits{
    {"memory-lock", EditPlace::memtune, {"<hard_limit unit='KiB'>1</hard_limit>"}},
    {"hugepages", EditPlace::memoryBacking, {"<hugepages/>", "<locked/>"}},
    {"vcpu-pins", EditPlace::cputune, {"<vcpupin vcpu='0' cpuset='1'/>"}},
    {"memory-nodes", EditPlace::numatune, {"<memory mode='strict' nodeset='0'/>"}},
    {"address-bits", EditPlace::cpu, {"<maxphysaddr mode='passthrough'/>"}},
    {"pci-hole", EditPlace::pcieRoot, {"<pcihole64 unit='KiB'>1</pcihole64>"}},
    {"mmio", EditPlace::qemuCommandline, {"<qemu:arg value='-fw_cfg'/>"}},
    {"clique", EditPlace::qemuOverride, {"<qemu:device alias='a'><x/></qemu:device>"}}};

// What `import` and adoption read.
bool checkHandMade(std::string_view input) {
  const auto devices = accepted([&] { return domain::readHandMade(input); });
  for (const HandMadeDevice& device : devices.value_or(std::vector<HandMadeDevice>{})) {
    require(!device.form.empty(), "a device has a form for messages");
    require(!device.vlan || (device.vlanFault.empty() && device.vlan->id <= 4094),
            "a VLAN that is read is one");
    require(device.kind != HandMadeKind::arguments || !device.managed,
            "libvirt manages no device of QEMU's arguments");
  }
  const auto tool = accepted([&] { return domain::managingTool(input); });
  require(!tool || tool->name.empty() == tool->evidence.empty(), "a program is named by evidence");
  require(tool.has_value() == devices.has_value(), "both readers accept the same domains");
  return devices.has_value();
}

}  // namespace

void runTarget(std::string_view input) {
  const auto machine = accepted([&] { return domain::readGuestMachine(input); });
  const bool isDomain = machine.has_value();
  if (machine) {
    const auto bare = domain::withoutOurDevices(*machine);
    require(
        bare.passed.size() <= machine->passed.size() &&
            std::ranges::all_of(bare.passed, [](const auto& each) { return each.name.empty(); }),
        "a machine without our devices has none");
  }
  require(accepted([&] { return domain::readDomainFacts(input); }).has_value() == isDomain &&
              accepted([&] { return domain::guestMemory(input); }).has_value() == isDomain &&
              accepted([&] { return domain::configuredBackend(input); }).has_value() == isDomain &&
              checkHandMade(input) == isDomain,
          "all readers accept the same domains");
  require(!accepted([&] { return domain::parseDomain(input); }) || isDomain,
          "a domain that can be managed is a domain");
  accepted([&] { return domain::doubtAboutArguments(input); });
  accepted([&] { return domain::readNetworkPool(input); });
  const auto same = accepted([&] { return domain::withEdits(input, {}); });
  require(!same || *same == input, "no edit changes nothing");
  if (const auto edited = accepted([&] { return domain::withEdits(input, edits); })) {
    require(accepted([&] { return domain::readDomainFacts(*edited); }).has_value(),
            "a domain with edits is a domain");
  }
}

}  // namespace vfpass::fuzz
