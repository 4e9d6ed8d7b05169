#include "scenarios/sample_host.hpp"
#include "scenarios/scenario.hpp"

namespace vfpass::crash {
namespace {

// Both are for VF 0 of the first PF, whose attributes setUpTraining() sets.
const std::string ownHostdev = R"(  <hostdev mode='subsystem' type='pci' managed='no'>
      <source>
        <address domain='0x0000' bus='0x01' slot='0x00' function='0x1'/>
      </source>
      <address type='pci' domain='0x0000' bus='0x05' slot='0x00' function='0x0'/>
    </hostdev>
  )";
const std::string ownInterface = R"(  <interface type='hostdev' managed='yes'>
      <mac address='52:54:00:00:00:01'/>
      <source>
        <address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x1'/>
      </source>
      <vlan>
        <tag id='100'/>
      </vlan>
      <address type='pci' domain='0x0000' bus='0x05' slot='0x00' function='0x0'/>
    </interface>
  )";
const std::string vlan100 = "    vlan: {id: 100}\n";

// The domain has the element from somebody else, and the mapping takes its device over.
std::function<void(World&)> handMade(const std::string& element, const std::string& settings = "") {
  return [element, settings](World& world) {
    setUpTraining(world, 4);
    std::string& xml = world.domain("train0").persistentXml.text();
    xml.insert(xml.rfind("</devices>"), element);
    writeMapping(
        world, "train0",
        "topology: flat\nvfs:\n" + vfEntry("rail0", "    index: 0\n    adopt: true\n" + settings));
  };
}

// As an administrator binds it once for an element with managed='no'.
void bindToVfio(World& world, const std::string& vf) {
  world.files.write(world.files.directoryOf(vf) + "/driver_override", "vfio-pci\n");
  world.kernel.change({"write", "sys/bus/pci/drivers/mlx5_core/unbind", vf});
  world.kernel.change({"write", "sys/bus/pci/drivers/vfio-pci/bind", vf});
}

void handMadeAndRunning(World& world) {
  handMade(ownHostdev)(world);
  bindToVfio(world, vfAddressOf(firstPf, 0));
  world.startWithoutHook("train0");
}

void adopted(World& world) {
  handMade(ownHostdev, vlan100)(world);
  attach(world);
}

void adoptedAndRunning(World& world) {
  handMadeAndRunning(world);
  attach(world);
}

void attached(World& world) {
  setUpTraining(world, 4);
  attach(world);
}

void attachedAndRunning(World& world) {
  attached(world);
  start(world);
}

}  // namespace

std::vector<Scenario> adoptionScenarios() {
  const auto act = command({"attach", "train0"});
  const auto detach = command({"detach", "train0"});
  const auto keep = command({"detach", "train0", "--keep"});
  return {{"adopt-hostdev", handMade(ownHostdev, vlan100), act},
          {"adopt-interface", handMade(ownInterface), act},
          {"adopt-live", handMadeAndRunning, act},
          {"detach-adopted", adopted, detach},
          {"detach-adopted-live", adoptedAndRunning, detach},
          {"detach-keep", attached, keep},
          {"detach-keep-live", attachedAndRunning, keep}};
}

}  // namespace vfpass::crash
