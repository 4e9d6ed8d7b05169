#include "vfpass/guest_tree.hpp"

#include <algorithm>
#include <array>

namespace vfpass {
namespace {

constexpr std::array<std::string_view, 4> controllerModels{"pcie-expander-bus", "pcie-root-port",
                                                           "pcie-switch-upstream-port",
                                                           "pcie-switch-downstream-port"};

}  // namespace

std::string_view toString(ControllerModel model) {
  return controllerModels[static_cast<std::size_t>(model)];
}

std::optional<ControllerModel> parseControllerModel(std::string_view model) {
  const auto* const found = std::ranges::find(controllerModels, model);
  return found == controllerModels.end()
             ? std::nullopt
             : std::optional(static_cast<ControllerModel>(found - controllerModels.begin()));
}

bool GuestMachine::pciExpress() const {
  const PciController* root = controller(0);
  return root != nullptr && root->model == "pcie-root";
}

const PciController* GuestMachine::controller(unsigned index) const {
  const auto found = std::ranges::find_if(
      controllers, [index](const PciController& each) { return each.index == index; });
  return found == controllers.end() ? nullptr : &*found;
}

}  // namespace vfpass
