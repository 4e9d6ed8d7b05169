#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fake/fake_kernel.hpp"
#include "hosts/topology_builder.hpp"
#include "vfpass/plan/plan_attach.hpp"

namespace vfpass::plan {

/// An attach to a q35 domain without cells, on a host with two PFs below one host bridge.
class TwoCardAttach : public testing::Test {
 protected:
  static constexpr const char* firstPf = "0000:01:00.0";
  static constexpr const char* secondPf = "0000:02:00.0";

  TwoCardAttach() {
    kernel.addPf(firstPf, "ens1f0np0", 8, 4);
    kernel.addPf(secondPf, "ens2f0np0", 8, 4);
    hosts::TopologyBuilder host;
    const auto bridge = host.hostBridge("pci0000:00", 0);
    firstPort = host.function(FunctionRole::rootPort, "0000:00:01.0", bridge);
    secondPort = host.function(FunctionRole::rootPort, "0000:00:02.0", bridge);
    host.pf(firstPf, "mlx5_0", bridge, firstPort);
    host.pf(secondPf, "mlx5_1", bridge, secondPort);
    input.topology = host.topology;
    input.machine = GuestMachine{};
    input.machine->domain = "train0";
    input.machine->machine = "pc-q35-7.2";
    input.machine->controllers = {PciController{0, "pcie-root", {}, {}, {}, {}, true, {}}};
    input.domain = *parseUuid("0f5e9a3c-1111-4222-8333-944455566677");
    input.domainName = input.mapping.vm = "train0";
    input.generation = 7;
  }

  void map(const std::string& name, const std::string& netdev) {
    MappedVf vf;
    vf.name = name;
    vf.pf.netdev = netdev;
    input.mapping.vfs.push_back(vf);
  }

  AttachDecision decide() {
    input.inventory = kernel.inventory();
    return planAttach(input);
  }

  // The state after an attach, with the domain running if `live`.
  void keep(const AttachDecision& decision, bool live = false) {
    input.leases = decision.leases;
    input.active = input.scope.live = live;
    input.xmlCurrent = true;
    for (const Lease& lease : decision.leases) {
      if (live) {
        input.plugged.insert(lease.entry);
      }
    }
  }

  fake::FakeKernel kernel;
  AttachInput input;
  std::size_t firstPort = 0;  ///< above the first PF: indices in `input.topology`
  std::size_t secondPort = 0;
};

}  // namespace vfpass::plan
