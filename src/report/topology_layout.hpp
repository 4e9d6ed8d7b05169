#pragma once

#include <map>
#include <vector>

#include "markup.hpp"
#include "topology_words.hpp"

namespace vfpass::report {

/// A host bridge or a switch with its position in the picture.
struct PlacedBranch {
  std::optional<std::size_t> port;
  std::size_t hostBridge = 0;
  Rectangle place;
  std::vector<std::size_t> devices;
  std::vector<PlacedBranch> inner;
};

/// The host bridges of one NUMA node.
struct PlacedNode {
  int node = -1;  ///< -1: unknown
  Rectangle place;
  std::vector<PlacedBranch> bridges;
};

struct TopologyLayout {
  int width = 0;
  int height = 0;  ///< of all content with the heading; the legend goes below
  std::vector<PlacedNode> nodes;
  std::map<std::size_t, Rectangle> devices;  ///< by function
  std::map<std::size_t, int> boxes;          ///< by function: equal for devices of one box
  bool vfSquares = false;                    ///< at least one VF is drawn
};

// Dimensions that drawing also needs, in pixels.
inline constexpr int pictureMargin = 28;
inline constexpr int headingHeight = 84;
inline constexpr int labelHeight = 26;
inline constexpr int boxPadding = 12;
inline constexpr int deviceWidth = 196;
inline constexpr int deviceTextHeight = 64;
inline constexpr int shortDeviceHeight = 46;  ///< for a device with two lines of text
inline constexpr int farRailHeight = 22;      ///< for the line that names a GPU's far PF
inline constexpr int vfSize = 16;             ///< for a number of two digits
inline constexpr int vfStep = 18;
inline constexpr int vfColumns = (deviceWidth - 2 * boxPadding) / vfStep;
inline constexpr std::size_t vfSquares = 4 * static_cast<std::size_t>(vfColumns);

/// Number of VFs drawn for a PF; 0: too many, so a bar represents them.
std::size_t drawnVfs(const Device& pf);

/// GPUs and NVSwitches on the left, NICs on the right, so that a rail below one switch is a short
/// horizontal line; switches below; NUMA nodes below each other. Host bridges without a GPU or PF
/// come last.
TopologyLayout layOut(const TopologyWords& words);

}  // namespace vfpass::report
