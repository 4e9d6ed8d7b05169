#include "vfpass/topology/mirror.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "hosts/topology_builder.hpp"
#include "mirror_support.hpp"
#include "vfpass/domain/domain_xml.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/topology/distance.hpp"
#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::topology {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::size_t countModel(const std::vector<Lease>& leases, ControllerModel model) {
  std::set<unsigned> indices;
  for (const Lease& lease : leases) {
    for (const GuestController& controller : lease.guest.controllers) {
      if (controller.model == model) {
        indices.insert(controller.index);
      }
    }
  }
  return indices.size();
}

std::string nameOf(const testing::TestParamInfo<HostAndRails>& info) {
  std::string name = info.param.host + "_" + std::to_string(info.param.rails) + "_rails";
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

class MirrorTest : public testing::TestWithParam<HostAndRails> {};

TEST_P(MirrorTest, GivesEveryPairItsHostDistance) {
  const Topology host = testHost(GetParam().host);
  const auto functions = railsOf(host, GetParam().rails);
  MirroredDomain domain(host, testDomain(cellsFor(host, functions)));
  EXPECT_THAT(domain.attach(named(functions)).notes, IsEmpty());
  EXPECT_THAT(domain.differences(), IsEmpty());
  EXPECT_THAT(domain.leases(), SizeIs(functions.size()));
}

TEST_P(MirrorTest, PutsEveryDeviceAloneAtSlot0OfItsPort) {
  const Topology host = testHost(GetParam().host);
  const auto functions = railsOf(host, GetParam().rails);
  MirroredDomain domain(host, testDomain(cellsFor(host, functions)));
  domain.attach(named(functions));
  std::set<PciAddress> places;
  for (const Device& function : domain.guest().functions) {
    EXPECT_TRUE(places.insert(function.address).second) << toString(function.address);
    if (!function.entry.empty()) {
      EXPECT_EQ(function.address.slot, 0);
      EXPECT_EQ(function.address.function, 0);
    }
  }
}

TEST_P(MirrorTest, GivesDevicesNumaNodeOfTheirCell) {
  const Topology host = testHost(GetParam().host);
  const auto functions = railsOf(host, GetParam().rails);
  const auto cells = cellsFor(host, functions);
  MirroredDomain domain(host, testDomain(cells));
  domain.attach(named(functions));
  for (const Device& function : domain.guest().functions) {
    if (function.entry.empty()) {
      continue;
    }
    const auto number = std::stoul(function.entry.substr(3));
    const int node = host.functions[functions[number]].numaNode;
    const auto cell = std::find_if(cells.begin(), cells.end(),
                                   [node](const TestCell& each) { return each.hostNode == node; });
    EXPECT_EQ(function.numaNode, static_cast<int>(cell->id)) << function.entry;
  }
}

// A device has only one lease, also where two rails share a NIC.
std::vector<std::size_t> withoutRepetition(const std::vector<std::size_t>& functions) {
  std::vector<std::size_t> once;
  std::copy_if(functions.begin(), functions.end(), std::back_inserter(once),
               [&](auto each) { return std::find(once.begin(), once.end(), each) == once.end(); });
  return once;
}

TEST_P(MirrorTest, IsIdempotentAndRemovedWithoutTrace) {
  const Topology host = testHost(GetParam().host);
  const auto functions = withoutRepetition(railsOf(host, GetParam().rails));
  const std::string bare = testDomain(cellsFor(host, functions));
  MirroredDomain domain(host, bare);
  domain.attach(named(functions));
  const std::string first = domain.xml();
  const auto leases = domain.leases();
  domain.attach(named(functions));
  EXPECT_EQ(domain.leases(), leases);
  EXPECT_EQ(domain.xml(), first);
  EXPECT_EQ(domain::withLeases(first, leases, domain::builtInTemplates(), testKey()), first);
  EXPECT_THAT(domain::elementDifferences(first, leases), testing::IsEmpty());
  EXPECT_TRUE(domain::carriesLeases(first, leases, testKey()));
  EXPECT_EQ(domain::withLeases(first, {}, domain::builtInTemplates(), {}), bare);
}

// The lab also defines and starts these domains (tests/lab/write_mirrored_domains.cpp).
TEST_P(MirrorTest, IsValidForLibvirt) {
  const auto directory = std::filesystem::path(VFPASS_BINARY_DIR) / "mirror";
  std::filesystem::create_directories(directory);
  const auto file = directory / (GetParam().host + "-" + std::to_string(GetParam().rails) + ".xml");
  std::ofstream(file) << mirroredDomain(GetParam());
  const std::string command =
      "xmllint --noout --relaxng /usr/share/libvirt/schemas/domain.rng " + file.string();
  EXPECT_EQ(std::system((command + " 2>" + file.string() + ".log").c_str()), 0)  // NOLINT
      << std::ifstream(file.string() + ".log").rdbuf();
}

INSTANTIATE_TEST_SUITE_P(Hosts, MirrorTest, testing::ValuesIn(mirroredHosts()), nameOf);

TEST(Mirror, AddsNoSwitchWhenHostHasNone) {
  const Topology host = testHost("no-switches");
  const auto functions = railsOf(host, 8);
  MirroredDomain domain(host, testDomain(cellsFor(host, functions)));
  domain.attach(named(functions));
  EXPECT_EQ(countModel(domain.leases(), ControllerModel::upstreamPort), 0U);
  EXPECT_EQ(countModel(domain.leases(), ControllerModel::expanderBus), 2U);
  EXPECT_EQ(countModel(domain.leases(), ControllerModel::rootPort), 16U);
}

TEST(Mirror, NestsSwitchesOnlyBelowSameHostRootPort) {
  const Topology host = testHost("nested");
  const auto functions = railsOf(host, 4);
  MirroredDomain domain(host, testDomain(cellsFor(host, functions)));
  domain.attach(named(functions));
  EXPECT_EQ(countModel(domain.leases(), ControllerModel::rootPort), 2U);
  std::set<std::size_t> switches;
  for (const std::size_t function : functions) {
    switches.insert(switchOf(host, host.functions[function].parent.value()));
  }
  EXPECT_EQ(countModel(domain.leases(), ControllerModel::upstreamPort), switches.size());
}

TEST(Mirror, PlacesTwoVfsOfOnePfBelowOneSwitch) {
  const Topology host = testHost("no-switches");
  const auto pf = railsOf(host, 1)[1];
  MirroredDomain domain(host, testDomain(cellsFor(host, {pf})));
  domain.attach({{"rail0", pf}, {"rail1", pf}});
  EXPECT_EQ(countModel(domain.leases(), ControllerModel::upstreamPort), 1U);
  EXPECT_EQ(domain.lease("rail0").guest.controllers.back().address.bus,
            domain.lease("rail1").guest.controllers.back().address.bus);
}

TEST(Mirror, AddsNoExpanderBusForOneHostBridgeWithoutCells) {
  const Topology host = testHost("nested");
  const auto functions = railsOf(host, 2);
  MirroredDomain domain(host, testDomain({}));
  domain.attach(named(functions));
  EXPECT_EQ(countModel(domain.leases(), ControllerModel::expanderBus), 0U);
  EXPECT_THAT(domain.differences(), IsEmpty());
}

// QEMU removes the ACPI hotplug handler of everything below a root port whose hotplug is off.
TEST(Mirror, KeepsHotplugOfPortsBelowRootBus) {
  const Topology host = testHost("nested");
  const auto functions = railsOf(host, 4);
  const auto withoutHotplug = [](const std::vector<Lease>& leases) {
    std::set<unsigned> indices;
    for (const Lease& lease : leases) {
      for (const GuestController& controller : lease.guest.controllers) {
        if (!controller.hotplug) {
          indices.insert(controller.index);
        }
      }
    }
    return indices;
  };
  MirroredDomain onRoot(host, testDomain({}));
  onRoot.attach(named(functions));
  EXPECT_THAT(withoutHotplug(onRoot.leases()), IsEmpty());
  MirroredDomain onExpander(host, testDomain(cellsFor(host, functions)));
  onExpander.attach(named(functions));
  EXPECT_THAT(withoutHotplug(onExpander.leases()), Not(IsEmpty()));
}

TEST(Mirror, NotesMissingCells) {
  const Topology host = testHost("two-sockets");
  MirroredDomain domain(host, testDomain({}));
  EXPECT_THAT(domain.attach(named(railsOf(host, 1))).notes,
              ElementsAre(HasSubstr("has no NUMA cells")));
}

TEST(Mirror, RefusesCrossSocketPairInSingleNodeGuest) {
  const Topology host = testHost("two-sockets");
  const auto functions = railsOf(host, 4);
  for (const auto& cells : {std::vector<TestCell>{}, std::vector<TestCell>{{0, 0}}}) {
    MirroredDomain domain(host, testDomain(cells));
    EXPECT_THROW(domain.attach(named(functions)), std::runtime_error);
  }
}

TEST(Mirror, MatchesCellsByNumberWithoutMemnodes) {
  const Topology host = testHost("two-sockets");
  MirroredDomain domain(host, testDomain({{0, -1}, {1, -1}}));
  EXPECT_THAT(domain.attach(named(railsOf(host, 4))).notes,
              ElementsAre(HasSubstr("cell 0 for host node 0, cell 1 for host node 1")));
  EXPECT_THAT(domain.differences(), IsEmpty());
}

TEST(Mirror, MatchesCellsByOrderWhenNodeNumbersHaveGaps) {
  const Topology host = testHost("nps4");
  MirroredDomain domain(host, testDomain({{0, -1}, {1, -1}, {2, -1}, {3, -1}}));
  EXPECT_THAT(domain.attach(named(railsOf(host, 8))).notes,
              ElementsAre(HasSubstr("cell 3 for host node 7")));
  EXPECT_THAT(domain.differences(), IsEmpty());
}

TEST(Mirror, KeepsAddressesWhenEntriesChange) {
  const Topology host = testHost("h100-8");
  const auto functions = railsOf(host, 4);
  auto devices = named(functions);
  MirroredDomain domain(host, testDomain(cellsFor(host, functions)));
  domain.attach(devices);
  const auto before = domain.leases();
  const auto removed = devices[2];
  devices.erase(devices.begin() + 2);
  domain.attach(devices);
  for (const Lease& lease : domain.leases()) {
    const auto same = std::find_if(before.begin(), before.end(),
                                   [&](const Lease& each) { return each.entry == lease.entry; });
    EXPECT_EQ(lease.guest.address, same->guest.address) << lease.entry;
  }
  devices.push_back(removed);
  domain.attach(devices);
  EXPECT_EQ(domain.lease("dev2").guest.address, before[2].guest.address)
      << "the port that it had is free again";
  EXPECT_THAT(domain.differences(), IsEmpty());
}

// libvirt fills a gap with a root port that is never removed.
TEST(Mirror, LeavesNoGapsInIndices) {
  const Topology host = testHost("h100-8");
  auto devices = named(railsOf(host, 8));
  MirroredDomain domain(host, testDomain(cellsFor(host, railsOf(host, 8))));
  domain.attach(devices);
  while (devices.size() > 1) {
    devices.erase(devices.begin() + static_cast<std::ptrdiff_t>(devices.size() / 3));
    domain.attach(devices);
    unsigned expected = 0;
    for (const auto& controller : domain::readGuestMachine(domain.xml()).controllers) {
      EXPECT_EQ(controller.index, expected++);
    }
    EXPECT_THAT(domain.differences(), IsEmpty());
  }
}

TEST(Mirror, ReservesSparePortsAtEachSwitch) {
  const Topology host = testHost("h100-8");
  const auto functions = railsOf(host, 2);
  MirroredDomain domain(host, testDomain(cellsFor(host, functions)));
  domain.attach(named(functions));
  const auto ports = countModel(domain.leases(), ControllerModel::downstreamPort);
  const auto switches = countModel(domain.leases(), ControllerModel::upstreamPort);
  domain.attach(named(functions), 2);
  EXPECT_EQ(countModel(domain.leases(), ControllerModel::downstreamPort), ports + 2 * switches);
  const auto leases = domain.leases();
  domain.attach(named(functions), 2);
  EXPECT_EQ(domain.leases(), leases) << "the same ports are spare again";
}

TEST(Mirror, KeepsFlatPlacesWithNote) {
  const Topology host = testHost("no-switches");
  const auto pf = railsOf(host, 1)[1];
  MirroredDomain domain(host, testDomain(cellsFor(host, {pf})));
  domain.attach({{"rail0", pf}});
  const auto place = domain.lease("rail0").guest.address;
  const Mirror mirror = domain.attach({{"rail0", pf}, {"rail1", pf}});
  EXPECT_EQ(domain.lease("rail0").guest.address, place);
  EXPECT_THAT(mirror.notes,
              Contains(HasSubstr("rail0 and rail1: PHB in the guest, PIX on the host")));
}

TEST(Mirror, RefusesMachinesWithoutPciExpress) {
  const Topology host = testHost("nested");
  std::string xml = testDomain({});
  for (const auto& [from, to] :
       {std::pair("pcie-root'/>", "pci-root'/>"), std::pair("pc-q35-7.2", "pc-i440fx-7.2")}) {
    xml.replace(xml.find(from), std::string(from).size(), to);
  }
  MirroredDomain domain(host, xml);
  try {
    domain.attach(named(railsOf(host, 1)));
    ADD_FAILURE() << "no fault";
  } catch (const std::runtime_error& fault) {
    EXPECT_THAT(fault.what(), HasSubstr("machine type pc-i440fx-7.2"));
  }
}

TEST(Mirror, RefusesTreeWithMorePortsThanSlots) {
  const Topology host = testHost("no-switches");
  const auto pf = railsOf(host, 1)[1];
  std::vector<std::pair<std::string, std::size_t>> devices;
  for (unsigned i = 0; i < 40; ++i) {
    devices.emplace_back("rail" + std::to_string(i), pf);
  }
  MirroredDomain domain(host, testDomain(cellsFor(host, {pf})));
  EXPECT_THROW(domain.attach(devices), std::runtime_error);
}

TEST(Mirror, RefusesTreeWithMorePortsThanBuses) {
  const Topology host = testHost("h100-8");
  const auto functions = railsOf(host, 8);
  MirroredDomain domain(host, testDomain(cellsFor(host, functions)));
  EXPECT_THROW(domain.attach(named(functions), 28), std::runtime_error);
}

TEST(Mirror, NumbersExpandersBelowThoseOfQemusCommandLine) {
  const Topology host = testHost("two-sockets");
  const auto functions = railsOf(host, 2);
  std::string xml = testDomain(cellsFor(host, functions));
  xml.insert(xml.find("</domain>"),
             "  <qemu:commandline xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n"
             "    <qemu:arg value='-device'/>\n"
             "    <qemu:arg value='pxb-pcie,id=pcie.1,bus_nr=0x80,bus=pcie.0'/>\n"
             "  </qemu:commandline>\n");
  MirroredDomain domain(host, xml);
  domain.attach(named(functions));
  for (const Lease& lease : domain.leases()) {
    EXPECT_LT(lease.guest.controllers.front().busNumber, 0x80);
  }
}

TEST(Mirror, ShrinksBesideBridgesOfQemusCommandLine) {
  const Topology host = testHost("h100-8");
  auto devices = named(railsOf(host, 4));
  std::string xml = testDomain(cellsFor(host, railsOf(host, 4)));
  xml.insert(xml.find("</domain>"),
             "  <qemu:commandline xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n"
             "    <qemu:arg value='-device'/>\n"
             "    <qemu:arg value='pcie-root-port,id=own,chassis=99,bus=pcie.0,addr=0x1e'/>\n"
             "  </qemu:commandline>\n");
  MirroredDomain domain(host, xml);
  const auto controllers = [&] {
    return domain::readGuestMachine(domain.xml()).controllers.size();
  };
  domain.attach(devices);
  const auto before = controllers();
  devices.resize(2);
  domain.attach(devices);
  EXPECT_LT(controllers(), before);
}

TEST(Mirror, NumbersExpandersAroundExistingExpanderBus) {
  const Topology host = testHost("two-sockets");
  const auto functions = railsOf(host, 2);
  std::string xml = testDomain(cellsFor(host, functions));
  const std::string own =
      "    <controller type='pci' index='2' model='pcie-expander-bus'>\n"
      "      <model name='pxb-pcie'/>\n"
      "      <target busNr='250'/>\n"
      "      <address type='pci' domain='0x0000' bus='0x00' slot='0x03' function='0x0'/>\n"
      "    </controller>\n";
  xml.insert(xml.find("    <controller type='sata'"), own);
  MirroredDomain domain(host, xml);
  domain.attach(named(functions));
  EXPECT_THAT(domain.differences(), IsEmpty());
  for (const Lease& lease : domain.leases()) {
    EXPECT_LT(lease.guest.controllers.front().busNumber, 250);
    EXPECT_GT(lease.guest.controllers.front().index, 2U);
  }
}

}  // namespace
}  // namespace vfpass::topology
