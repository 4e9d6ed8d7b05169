#include <algorithm>

#include "render_parts.hpp"

namespace vfpass::metrics {
namespace {

void addCollection(const Observation& observation, Exposition& target) {
  target.add(families::buildInfo, {observation.version}, std::uint64_t{1});
  for (const auto& [part, success] : observation.collected) {
    target.add(families::collectorSuccess, {part}, std::uint64_t{success});
  }
  if (observation.libvirtUp) {
    target.add(families::libvirtUp, {}, std::uint64_t{*observation.libvirtUp});
  }
}

}  // namespace

std::string labelOf(Outcome outcome) {
  std::string text(toString(outcome));
  std::ranges::replace(text, ' ', '_');
  return text;
}

std::string render(const Observation& observation) {
  Exposition target;
  addCollection(observation, target);
  addDevices(observation, target);
  addLeases(observation, target);
  addDoctor(observation, target);
  addVerifications(observation, target);
  return target.text();
}

}  // namespace vfpass::metrics
