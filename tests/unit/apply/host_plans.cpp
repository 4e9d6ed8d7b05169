#include "host_plans.hpp"

namespace vfpass::apply {

plan::HostInput hostInput(Host& host) {
  plan::HostInput input;
  input.pf = host.kernel.pfs.begin()->second;
  input.settings = host.kernel.readPfSettings(input.pf.address);
  return input;
}

Plan planOtherCount(Host& host) {
  auto input = hostInput(host);
  input.policy.vfCount = 6;
  input.policy.mtu = 9000;
  input.policy.up = true;
  return plan::planHost(input).plan;
}

Plan planOtherMode(Host& host) {
  auto input = hostInput(host);
  input.policy.vfCount = 3;
  input.policy.eswitchMode = "switchdev";
  input.policy.probeVfs = true;
  return plan::planHost(input).plan;
}

plan::SoftRoceInput softRoceInput(Host& host) {
  const state::Database database(host.folder / "state", state::Database::Open::createIfMissing,
                                 databaseTimeout);
  plan::SoftRoceInput input;
  input.found = host.kernel.rdmaLinks;
  input.records = database.softRoceRecords();
  input.bootId = host.kernel.boot;
  return input;
}

void makeLinks(Host& host) {
  auto input = softRoceInput(host);
  input.policy = {{"rxe0", "eth0", {}}, {"rxe1", "eth1", {}}};
  host.execute(plan::planSoftRoce(input).plan);
}

Plan planOtherLinks(Host& host) {
  auto input = softRoceInput(host);
  input.policy = {{"rxe1", "eth3", {}}, {"rxe2", "eth0", {}}};
  return plan::planSoftRoce(input).plan;
}

}  // namespace vfpass::apply
