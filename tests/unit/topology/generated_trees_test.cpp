#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "hosts/topology_builder.hpp"
#include "mirror_support.hpp"
#include "vfpass/domain/domain_xml.hpp"

namespace vfpass::topology {
namespace {

using testing::IsEmpty;

// A host with up to 3 host bridges and up to 2 nested switches below each root port; each port
// without a switch has a GPU.
class GeneratedHost {
 public:
  explicit GeneratedHost(std::mt19937& random) : random_(random) {
    const unsigned bridges = 1 + upTo(2);
    for (unsigned bridge = 0; bridge < bridges; ++bridge) {
      const auto root = host_.hostBridge("pci" + std::to_string(bridge), static_cast<int>(upTo(1)));
      for (unsigned port = 0; port < 1 + upTo(1); ++port) {
        addRootPort(root);
      }
    }
  }

  [[nodiscard]] const Topology& topology() const { return host_.topology; }
  [[nodiscard]] const std::vector<std::size_t>& gpus() const { return gpus_; }

 private:
  unsigned upTo(unsigned limit) {
    return std::uniform_int_distribution<unsigned>(0, limit)(random_);
  }

  std::string nextAddress() {
    const PciAddress place{0, static_cast<std::uint8_t>(next_++), 0, 0};
    return toString(place);
  }

  void addRootPort(std::size_t root) {
    std::vector<std::size_t> ports{host_.function(FunctionRole::rootPort, nextAddress(), root)};
    for (unsigned level = 0; level < upTo(2); ++level) {
      const auto above = ports[upTo(static_cast<unsigned>(ports.size()) - 1)];
      const auto upstream = host_.function(FunctionRole::upstreamPort, nextAddress(), root, above);
      for (unsigned down = 0; down < 1 + upTo(2); ++down) {
        ports.push_back(
            host_.function(FunctionRole::downstreamPort, nextAddress(), root, upstream));
      }
    }
    for (const auto port : ports) {
      if (isLeaf(port)) {
        gpus_.push_back(host_.gpu(nextAddress(), root, port));
      }
    }
  }

  [[nodiscard]] bool isLeaf(std::size_t port) const {
    return std::none_of(host_.topology.functions.begin(), host_.topology.functions.end(),
                        [port](const Device& each) { return each.parent == port; });
  }

  std::mt19937& random_;
  hosts::TopologyBuilder host_;
  std::vector<std::size_t> gpus_;
  unsigned next_ = 1;
};

// Random trees of switches, random choices of devices, entries that are added and removed.
TEST(Mirror, MirrorsGeneratedTrees) {
  std::mt19937 random(20261122);  // NOLINT: the same trees each time
  for (unsigned round = 0; round < 60; ++round) {
    const GeneratedHost host(random);
    // Cells represent nodes 0 and 1 whether or not a device is there.
    const std::string bare = testDomain({{0, 0}, {1, 1}});
    MirroredDomain domain(host.topology(), bare);
    auto devices = named(host.gpus());
    std::shuffle(devices.begin(), devices.end(), random);
    const std::vector<std::pair<std::string, std::size_t>> half(
        devices.begin(), devices.begin() + 1 + static_cast<std::ptrdiff_t>(devices.size() / 2));
    for (const auto& step : {half, devices, half, devices}) {
      domain.attach(step);
      ASSERT_THAT(domain.differences(), IsEmpty()) << "round " << round;
      ASSERT_EQ(domain::withLeases(domain.xml(), {}, domain::builtInTemplates(), {}), bare);
    }
  }
}

}  // namespace
}  // namespace vfpass::topology
