#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "mirror_support.hpp"
#include "vfpass/domain/read_domain_facts.hpp"
#include "vfpass/report/topology_report.hpp"
#include "vfpass/topology/distance.hpp"
#include "vfpass/topology/guest_topology.hpp"

namespace vfpass::topology {
namespace {

using testing::HasSubstr;
using testing::Not;

struct GuestFile {
  std::string nccl;
  nlohmann::json facts;  // guest addresses, kinds of devices, and their distances
};

GuestFile guestFile(std::size_t rails) {
  const Topology host = testHost("h100-8");
  const auto functions = railsOf(host, rails);
  MirroredDomain domain(host, testDomain(cellsFor(host, functions)));
  domain.attach(named(functions));
  const GuestMachine machine = domain::readGuestMachine(domain.xml());
  const Topology guest = guestTopology(machine, host);
  std::vector<report::GuestDevice> devices;
  GuestFile file;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const auto address = guestAddress(machine, domain.leases()[i].guest.address).value();
    devices.push_back({functions[i], address, findFunction(guest, address)->numaNode});
    file.facts["devices"].push_back(
        {{"address", toString(address)}, {"role", toString(host.functions[functions[i]].role)}});
  }
  for (const auto& row : guestMatrix(machine, host).distances) {
    nlohmann::json words;
    for (const auto& distance : row) {
      words.push_back(toString(distance.value()));
    }
    file.facts["distances"].push_back(words);
  }
  std::ostringstream text;
  report::writeGuestNcclTopology(text, host, devices);
  file.nccl = text.str();
  return file;
}

class GuestNcclTest : public testing::TestWithParam<std::size_t> {};

// scripts/check-nccl-topology has NCCL read these files on a machine with a GPU.
TEST_P(GuestNcclTest, FileHasGuestAddressesAndHostLinks) {
  const GuestFile file = guestFile(GetParam());
  for (const auto& device : file.facts["devices"]) {
    EXPECT_THAT(file.nccl, HasSubstr("busid=\"" + device["address"].get<std::string>() + "\""));
  }
  EXPECT_THAT(file.nccl, HasSubstr("link_speed=\"32.0 GT/s PCIe\" link_width=\"16\""));
  EXPECT_THAT(file.nccl, Not(HasSubstr("2.5 GT/s")));
  const auto directory =
      std::filesystem::path(VFPASS_BINARY_DIR) / "mirror" / ("guest-" + std::to_string(GetParam()));
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "nccl.xml") << file.nccl;
  std::ofstream(directory / "guest.json") << file.facts.dump(1) << '\n';
}

INSTANTIATE_TEST_SUITE_P(Rails, GuestNcclTest, testing::Values(1, 2, 4, 8));

}  // namespace
}  // namespace vfpass::topology
