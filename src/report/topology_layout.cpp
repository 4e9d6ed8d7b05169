#include "topology_layout.hpp"

#include <algorithm>

namespace vfpass::report {
namespace {

constexpr int widest = 1240;  // maximum width of a row of boxes
constexpr int railGap = 76;   // between GPUs and NICs
constexpr int nodeGap = 14;

class Layout {
 public:
  explicit Layout(const TopologyWords& words) : words_(words) {}

  TopologyLayout take() { return std::move(layout_); }

  void placeNodes() {
    std::map<int, std::vector<std::size_t>> bridgesOf;
    const auto branches = words_.branches();
    for (std::size_t i = 0; i < branches.size(); ++i) {
      if (!branches[i].devices.empty() || !branches[i].branches.empty()) {
        bridgesOf[words_.topology().hostBridges[i].numaNode].push_back(i);
      }
    }
    int bottom = headingHeight;
    for (auto& [number, bridges] : bridgesOf) {
      std::stable_partition(bridges.begin(), bridges.end(),
                            [&](std::size_t bridge) { return servesRails(branches[bridge]); });
      PlacedNode node;
      node.node = number;
      node.place = {pictureMargin, bottom, 0, 0};
      const Point inside{pictureMargin + boxPadding, bottom + labelHeight + boxPadding};
      Flow flow(inside);
      for (const std::size_t bridge : bridges) {
        node.bridges.push_back(placeBranch(branches[bridge], bridge, flow.next()));
        placeInFlow(flow, node.bridges.back(), branches[bridge], bridge);
      }
      node.place.width = flow.right() - pictureMargin + boxPadding;
      node.place.height = flow.bottom() - bottom + boxPadding;
      bottom = node.place.y + node.place.height + nodeGap;
      layout_.nodes.push_back(std::move(node));
    }
    finish(bottom);
  }

 private:
  // Places boxes in rows, left to right; a box that does not fit starts the next row.
  class Flow {
   public:
    explicit Flow(Point start) : start_(start), next_(start), right_(start.x), bottom_(start.y) {}
    [[nodiscard]] Point next() const { return next_; }
    [[nodiscard]] bool fits(int width) const {
      return next_.x == start_.x || next_.x + width <= start_.x + widest;
    }
    void newRow() { next_ = {start_.x, bottom_ + nodeGap}; }
    void take(const Rectangle& place) {
      right_ = std::max(right_, place.x + place.width);
      bottom_ = std::max(bottom_, place.y + place.height);
      next_.x = place.x + place.width + nodeGap;
    }
    [[nodiscard]] int right() const { return right_; }
    [[nodiscard]] int bottom() const { return bottom_; }

   private:
    Point start_;
    Point next_;
    int right_;
    int bottom_;
  };

  [[nodiscard]] bool servesRails(const topology::Branch& branch) const {
    return std::ranges::any_of(branch.devices,
                               [this](std::size_t device) {
                                 const Device& function = words_.function(device);
                                 return function.role == FunctionRole::gpu || isPf(function);
                               }) ||
           std::ranges::any_of(branch.branches, [this](const topology::Branch& inner) {
             return servesRails(inner);
           });
  }

  void placeInFlow(Flow& flow, PlacedBranch& placed, const topology::Branch& branch,
                   std::size_t bridge) {
    if (!flow.fits(placed.place.width)) {
      flow.newRow();
      placed = placeBranch(branch, bridge, flow.next());
    }
    flow.take(placed.place);
  }

  [[nodiscard]] bool hasFarRail(std::size_t gpu) const {
    const auto& rails = words_.rails();
    return std::ranges::any_of(rails, [&](const topology::Rail& rail) {
      const auto box = rail.pf ? layout_.boxes.find(*rail.pf) : layout_.boxes.end();
      return rail.gpu == gpu && rail.pf &&
             (box == layout_.boxes.end() || box->second != layout_.boxes.at(gpu));
    });
  }

  int heightOf(std::size_t device) {
    const Device& function = words_.function(device);
    if (function.role == FunctionRole::nvswitch ||
        function.role == FunctionRole::nvlinkManagement) {
      return shortDeviceHeight;
    }
    if (function.role == FunctionRole::gpu && hasFarRail(device)) {
      return deviceTextHeight + farRailHeight;
    }
    if (function.totalVfs == 0 && function.vfCount == 0) {
      return deviceTextHeight;
    }
    const auto rows = static_cast<int>((drawnVfs(function) + vfColumns - 1) / vfColumns);
    layout_.vfSquares = layout_.vfSquares || rows > 0;
    return deviceTextHeight + std::max(rows, 1) * vfStep + boxPadding / 2;
  }

  // Places both columns row by row, so that neighbours start at the same height. Returns the lower
  // end.
  int placeRows(const std::vector<std::size_t>& left, const std::vector<std::size_t>& right,
                Point at, int shift) {
    int bottom = at.y;
    for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
      int height = 0;
      for (const auto& [column, x] : {std::pair(&left, at.x), std::pair(&right, at.x + shift)}) {
        if (i < column->size()) {
          const int own = heightOf((*column)[i]);
          layout_.devices[(*column)[i]] = {x, at.y, deviceWidth, own};
          height = std::max(height, own);
        }
      }
      bottom = at.y + height;
      at.y = bottom + nodeGap;
    }
    return bottom;
  }

  // Places one or both columns.
  Rectangle placeDevices(const std::vector<std::size_t>& devices, Point at) {
    std::vector<std::size_t> left;
    std::vector<std::size_t> right;
    ++box_;
    for (const std::size_t device : devices) {
      layout_.boxes[device] = box_;
      const bool nic = words_.function(device).role == FunctionRole::nic;
      (nic ? right : left).push_back(device);
    }
    const bool rails = !left.empty() && !right.empty();
    if (right.empty() && left.size() > 2) {  // mostly NVSwitches: use two columns
      const auto half = left.begin() + static_cast<std::ptrdiff_t>((left.size() + 1) / 2);
      right.assign(half, left.end());
      left.erase(half, left.end());
    }
    const bool both = !left.empty() && !right.empty();
    const int shift = both ? deviceWidth + (rails ? railGap : nodeGap) : 0;
    const int bottom = placeRows(left, right, at, shift);
    return {at.x, at.y, devices.empty() ? 0 : shift + deviceWidth, bottom - at.y};
  }

  PlacedBranch placeBranch(const topology::Branch& branch, std::size_t bridge, Point at) {
    PlacedBranch placed;
    placed.port = branch.port;
    placed.hostBridge = bridge;
    placed.devices = branch.devices;
    const Point inside{at.x + boxPadding, at.y + labelHeight + boxPadding / 2};
    const Rectangle devices = placeDevices(branch.devices, inside);
    int right = inside.x + devices.width;
    int bottom = inside.y + devices.height;
    if (!branch.branches.empty()) {
      Flow flow({inside.x, branch.devices.empty() ? inside.y : bottom + nodeGap});
      for (const topology::Branch& inner : branch.branches) {
        placed.inner.push_back(placeBranch(inner, bridge, flow.next()));
        placeInFlow(flow, placed.inner.back(), inner, bridge);
      }
      right = std::max(right, flow.right());
      bottom = flow.bottom();
    }
    placed.place = {at.x, at.y, right - at.x + boxPadding, bottom - at.y + boxPadding};
    return placed;
  }

  void finish(int bottom) {
    constexpr int narrowest = 720;  // room for the heading and the legend
    int right = narrowest - pictureMargin;
    for (const PlacedNode& node : layout_.nodes) {
      right = std::max(right, node.place.x + node.place.width);
    }
    for (PlacedNode& node : layout_.nodes) {
      node.place.width = right - node.place.x;
    }
    layout_.width = right + pictureMargin;
    layout_.height = bottom;
  }

  const TopologyWords& words_;
  TopologyLayout layout_;
  int box_ = 0;
};

}  // namespace

std::size_t drawnVfs(const Device& pf) {
  const std::size_t count = std::max(pf.totalVfs, pf.vfCount);
  return count <= vfSquares ? count : 0;
}

TopologyLayout layOut(const TopologyWords& words) {
  Layout layout(words);
  layout.placeNodes();
  return layout.take();
}

}  // namespace vfpass::report
