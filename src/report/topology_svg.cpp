#include <algorithm>
#include <array>
#include <iterator>
#include <ostream>
#include <set>

#include "text_values.hpp"
#include "topology_layout.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

constexpr std::string_view svgStyle =
    "text{font-family:Inter,'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#1f2933}"
    ".title{font-size:22px;font-weight:600}.sub{font-size:13px;fill:#616e7c}"
    ".node{fill:#f5f7fa;stroke:#cbd2d9}.nodename{font-size:13px;font-weight:600;fill:#3e4c59}"
    ".bridge{fill:#fff;stroke:#cbd2d9}.switch{fill:#eef2f6;stroke:#9aa5b1}"
    ".label{font-size:11px;fill:#52606d}.right{text-anchor:end}.middle{text-anchor:middle}"
    ".gpu{fill:#eaf6e2;stroke:#5b9a2f;stroke-width:1.5}"
    ".nic{fill:#e7f1fb;stroke:#3d7ebf;stroke-width:1.5}"
    ".plain{fill:#f3edfa;stroke:#8062b5;stroke-width:1.5}"
    ".name{font-size:13px;font-weight:600}.small{font-size:11px;fill:#3e4c59}"
    ".mono{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:10.5px;fill:#616e7c}"
    ".warn{fill:#b44d12;font-weight:600}.pill{font-size:10px;font-weight:600;fill:#fff;"
    "text-anchor:middle}.rail{fill:none;stroke-width:3;stroke-linecap:round}"
    ".alike{fill:none;stroke-width:1.2;stroke-dasharray:3 3}"
    ".vf{fill:#fff;stroke:#3d7ebf;stroke-width:.8}"
    ".number{font-size:9px;text-anchor:middle;fill:#3e4c59}.taken{fill:#fff}"
    ".novf{fill:none;stroke:#8fb3d6;stroke-width:.8;stroke-dasharray:1.5 1.5}";

constexpr int lineHeight = 22;
constexpr std::size_t nameCharacters = 15;
constexpr std::size_t lineCharacters = 27;
constexpr std::size_t originCharacters = 44;
constexpr int distanceWidth = 38;  // of the label with a distance
// Of an uplink that is slower than a link below it.
constexpr const char* narrowMark = "▲";

std::string_view colorOf(topology::Distance distance) {
  constexpr std::array<std::string_view, 6> colors{"#52606d", "#2f8f2f", "#1f8a8a",
                                                   "#b7791f", "#c05621", "#c53030"};
  return colors[static_cast<std::size_t>(distance)];
}

// One colour per VM; they repeat if there are more VMs than colours.
std::string_view tenantColor(const std::vector<std::string>& tenants, const std::string& name) {
  constexpr std::array<std::string_view, 8> colors{"#6b46c1", "#d53f8c", "#dd6b20", "#00796b",
                                                   "#2b6cb0", "#8d6e63", "#9b2c2c", "#558b2f"};
  const auto found = std::lower_bound(tenants.begin(), tenants.end(), name);
  return colors[static_cast<std::size_t>(found - tenants.begin()) % colors.size()];
}

class Picture {
 public:
  Picture(const TopologyWords& words, std::string title)
      : words_(words),
        layout_(layOut(words)),
        tenants_(words.tenants()),
        title_(std::move(title)) {}

  [[nodiscard]] int width() const { return layout_.width; }
  [[nodiscard]] int height() const { return layout_.height + legendHeight() + pictureMargin / 2; }

  /// `parent` and `left`: the document, or the enclosing picture and the position in it.
  void draw(pugi::xml_node parent, int left = 0) {
    svg_ = SvgWriter(parent);
    svg_.begin(width(), height(), title_, svgStyle, left);
    svg_.rectangle({0, 0, width(), height()}, 0, "page", "#ffffff");
    drawHeading();
    for (const PlacedNode& node : layout_.nodes) {
      drawNode(node);
    }
    drawRails();
    drawLegend();
    svg_.end();
  }

 private:
  void drawHeading() {
    svg_.text({pictureMargin, 42}, "title", title_);
    std::size_t vfs = 0;
    for (const std::size_t pf : words_.pfs()) {
      vfs += words_.vfsOf(pf).size();
    }
    std::string counts = counted(words_.gpus().size(), "GPU") + " · " +
                         counted(words_.pfs().size(), "PF") + " · " + counted(vfs, "VF");
    if (!tenants_.empty()) {
      counts += " · " + counted(tenants_.size(), "VM") + " with leases";
    }
    svg_.text({pictureMargin, 64}, "sub", counts);
    if (!words_.origin().empty()) {
      svg_.text({width() - pictureMargin, 64}, "sub right",
                fitted(words_.origin(), originCharacters));
    }
  }

  void drawNode(const PlacedNode& node) {
    svg_.rectangle(node.place, 10, "node");
    std::string name =
        node.node < 0 ? "unknown NUMA node" : "NUMA node " + std::to_string(node.node);
    for (const NumaNode& candidate : words_.topology().processors.nodes) {
      if (candidate.number == node.node && !candidate.cpuMask.empty()) {
        name += "  ·  CPUs " + fitted(cpuText(candidate.cpuMask), 40);
      }
    }
    svg_.text({node.place.x + boxPadding + 2, node.place.y + 22}, "nodename", name);
    for (const PlacedBranch& bridge : node.bridges) {
      drawBranch(bridge);
    }
  }

  void drawBranch(const PlacedBranch& branch) {
    svg_.rectangle(branch.place, 8, branch.port ? "switch" : "bridge");
    const int right = branch.place.x + branch.place.width - boxPadding;
    const Point at{branch.place.x + boxPadding, branch.place.y + 18};
    if (branch.port) {
      const Device& port = words_.function(*branch.port);
      const bool isSwitch = port.role == FunctionRole::upstreamPort;
      svg_.text(at, "label", (isSwitch ? "switch " : "bridge ") + toString(port.address));
      const auto link = topology::linkAbove(words_.topology(), *branch.port);
      const bool narrow = isNarrow(branch);
      svg_.text({right, at.y}, narrow || isWarning(link) ? "label right warn" : "label right",
                (narrow ? narrowMark + std::string(" ") : "") + pcieText(words_.topology(), link));
    } else {
      svg_.text(at, "label",
                "host bridge " + words_.topology().hostBridges[branch.hostBridge].name);
    }
    for (const std::size_t device : branch.devices) {
      drawDevice(device);
    }
    for (const PlacedBranch& inner : branch.inner) {
      drawBranch(inner);
    }
  }

  static void collectDevices(const PlacedBranch& branch, std::vector<std::size_t>& devices) {
    devices.insert(devices.end(), branch.devices.begin(), branch.devices.end());
    for (const PlacedBranch& inner : branch.inner) {
      collectDevices(inner, devices);
    }
  }

  // Its uplink is slower than the link of a device below it.
  [[nodiscard]] bool isNarrow(const PlacedBranch& branch) const {
    std::vector<std::size_t> devices;
    collectDevices(branch, devices);
    return branch.port && topology::isNarrowerThanBelow(words_.topology(), *branch.port, devices);
  }

  [[nodiscard]] bool isAnyNarrow(const std::vector<PlacedBranch>& branches) const {
    return std::ranges::any_of(branches, [this](const PlacedBranch& branch) {
      return isNarrow(branch) || isAnyNarrow(branch.inner);
    });
  }

  [[nodiscard]] bool marksUplinks() const {
    return std::ranges::any_of(
        layout_.nodes, [this](const PlacedNode& node) { return isAnyNarrow(node.bridges); });
  }

  static std::string_view classOf(const Device& function) {
    return function.role == FunctionRole::gpu   ? "gpu"
           : function.role == FunctionRole::nic ? "nic"
                                                : "plain";
  }

  [[nodiscard]] std::string tooltip(const Device& function) const {
    std::vector<std::string> parts{toString(function.address)};
    const auto add = [&](const std::string& what, const std::string& value) {
      if (!value.empty()) {
        parts.push_back(what + value);
      }
    };
    add("", function.model);
    add("driver ", function.driver);
    add("IOMMU group ", function.iommuGroup ? std::to_string(*function.iommuGroup) : "");
    add("firmware ", function.rdma.empty() ? "" : function.rdma.front().firmware);
    add("serial ", function.serial);
    return join(parts, " · ");
  }

  void drawDevice(std::size_t device) {
    const Device& function = words_.function(device);
    const Rectangle& place = layout_.devices.at(device);
    const int left = place.x + boxPadding;
    const int right = place.x + place.width - boxPadding;
    svg_.openGroup(tooltip(function));
    svg_.rectangle(place, 6, classOf(function));
    const bool nvswitch = function.role == FunctionRole::nvswitch;
    const bool manager = function.role == FunctionRole::nvlinkManagement;
    svg_.text({left, place.y + 19}, "name",
              nvswitch  ? "NVSwitch"
              : manager ? "NVLink mgmt"
                        : fitted(words_.name(device), nameCharacters));
    svg_.text({left, place.y + 35}, "mono", toString(function.address));
    drawPcie(device, right, place.y);
    if (function.role == FunctionRole::nic) {
      drawPort(device, {left, place.y + 53});
      drawVfs(device, {left, place.y + deviceTextHeight});
    } else if (!nvswitch && !manager) {
      svg_.text({left, place.y + 53}, "small", fitted(shortModel(function), lineCharacters));
    }
    svg_.closeGroup();
  }

  // Draws the link next to the name and its capability below; the name of a VM takes the first
  // position.
  void drawPcie(std::size_t device, int right, int top) {
    const auto link = topology::linkAbove(words_.topology(), device);
    const bool slow = isWarning(link);
    const bool isShown = slow || link.state == topology::LinkState::idle;
    const std::string now =
        pcieText(link.state == topology::LinkState::unknown ? link.possible : link.now);
    const Lease* lease = words_.leaseOf(device);
    if (lease != nullptr) {
      drawPill({right, top + 15}, lease->domainName);
    }
    svg_.text({right, top + (lease == nullptr ? 19 : 35)},
              slow ? "small right warn" : "small right", now);
    if (isShown && lease == nullptr) {
      svg_.text({right, top + 35}, slow ? "small right warn" : "small right",
                "of " + pcieText(link.possible));
    }
  }

  static bool isWarning(const topology::Link& link) { return tintOf(link) == Tint::warning; }

  void drawPort(std::size_t device, Point at) {
    const Device& pf = words_.function(device);
    svg_.circle({at.x + 4, at.y - 4}, 4, topology::isUsable(pf) ? "#2f8f2f" : "#c53030");
    svg_.text({at.x + 13, at.y}, "small", fitted(portText(pf), lineCharacters));
  }

  void drawPill(Point right, const std::string& tenant) {
    const std::string name = fitted(tenant, 12);
    const int width = static_cast<int>(name.size()) * 6 + 14;
    svg_.rectangle({right.x - width, right.y - 10, width, 16}, 8, "fill",
                   tenantColor(tenants_, tenant));
    svg_.text({right.x - width / 2, right.y + 2}, "pill", name);
  }

  void drawVfs(std::size_t pf, Point at) {
    const Device& function = words_.function(pf);
    const auto& vfs = words_.vfsOf(pf);
    const std::size_t drawn = drawnVfs(function);
    if (drawn == 0) {
      drawVfBar(pf, at);
      return;
    }
    for (std::size_t i = 0; i < drawn; ++i) {
      const auto column = static_cast<int>(i % vfColumns);
      const auto row = static_cast<int>(i / vfColumns);
      const Rectangle square{at.x + column * vfStep, at.y + row * vfStep, vfSize, vfSize};
      if (i < vfs.size()) {
        drawVf(vfs[i], square);
      } else {
        svg_.rectangle(square, 2, "novf");
      }
    }
  }

  void drawVf(std::size_t vf, const Rectangle& square) {
    const Lease* lease = words_.leaseOf(vf);
    svg_.rectangle(
        square, 2, "vf",
        lease == nullptr ? std::string_view{} : tenantColor(tenants_, lease->domainName));
    if (const auto index = words_.function(vf).vfIndex) {
      svg_.text({square.x + vfSize / 2, square.y + vfSize - 5},
                lease == nullptr ? "number" : "number taken", std::to_string(*index));
    }
  }

  // Too many VFs for squares: write their number and how many are leased.
  void drawVfBar(std::size_t pf, Point at) {
    const Device& function = words_.function(pf);
    if (function.totalVfs == 0 && function.vfCount == 0) {
      return;
    }
    std::size_t leased = 0;
    for (const std::size_t vf : words_.vfsOf(pf)) {
      leased += words_.leaseOf(vf) == nullptr ? 0 : 1;
    }
    svg_.text({at.x, at.y + 9}, "small",
              std::to_string(function.vfCount) + " of " + std::to_string(function.totalVfs) +
                  " VFs" + (leased == 0 ? "" : ", " + std::to_string(leased) + " leased"));
  }

  void drawRails() {
    for (const auto& rail : words_.rails()) {
      if (!rail.pf) {
        continue;
      }
      if (!areNeighbours(rail.gpu, *rail.pf)) {
        drawFarRail(rail);
        continue;
      }
      for (const std::size_t pf : drawnAlike(rail)) {
        drawRail(rail.gpu, pf, rail.distance, "alike");
      }
      drawRail(rail.gpu, *rail.pf, rail.distance, "rail");
    }
  }

  // The PFs that are as near as the rail's, if there are few: more lines would hide the rails.
  [[nodiscard]] std::vector<std::size_t> drawnAlike(const topology::Rail& rail) const {
    constexpr std::size_t fewAlike = 3;
    std::vector<std::size_t> drawn;
    if (rail.pf && areNeighbours(rail.gpu, *rail.pf) && rail.alike.size() <= fewAlike) {
      std::ranges::copy_if(rail.alike, std::back_inserter(drawn),
                           [&](std::size_t pf) { return areNeighbours(rail.gpu, pf); });
    }
    return drawn;
  }

  [[nodiscard]] bool drawsAlike() const {
    return std::ranges::any_of(
        words_.rails(), [this](const topology::Rail& rail) { return !drawnAlike(rail).empty(); });
  }

  // True if both are in the two columns of one box, with nothing between them.
  [[nodiscard]] bool areNeighbours(std::size_t gpu, std::size_t pf) const {
    return layout_.boxes.at(gpu) == layout_.boxes.at(pf);
  }

  // A line would cross everything between the two, so the GPU names its PF instead.
  void drawFarRail(const topology::Rail& rail) {
    const Rectangle& place = layout_.devices.at(rail.gpu);
    const int right = place.x + place.width - boxPadding;
    const std::string name = "→ " + fitted(words_.name(*rail.pf), 12);
    const int bottom = place.y + place.height - 6;
    svg_.rectangle({place.x + boxPadding, bottom - 14, 38, 18}, 9, "fill", colorOf(rail.distance));
    svg_.text({place.x + boxPadding + 19, bottom - 1}, "pill",
              std::string(toString(rail.distance)));
    svg_.text({right, bottom - 1}, "small right", name, colorOf(rail.distance));
  }

  void drawRail(std::size_t gpu, std::size_t pf, topology::Distance distance,
                std::string_view cssClass) {
    const Rectangle& from = layout_.devices.at(gpu);
    const Rectangle& to = layout_.devices.at(pf);
    const Point start{from.x + from.width, from.y + deviceTextHeight / 2};
    const Point end{to.x, to.y + deviceTextHeight / 2};
    svg_.curve(start, end, cssClass, colorOf(distance));
    if (cssClass == "rail") {
      const Point middle{(start.x + end.x) / 2, (start.y + end.y) / 2};
      svg_.rectangle({middle.x - 19, middle.y - 9, 38, 18}, 9, "fill", colorOf(distance));
      svg_.text({middle.x, middle.y + 4}, "pill", std::string(toString(distance)));
    }
  }

  [[nodiscard]] std::set<topology::Distance> railDistances() const {
    std::set<topology::Distance> met;
    for (const auto& rail : words_.rails()) {
      if (rail.pf) {
        met.insert(rail.distance);
      }
    }
    return met;
  }

  [[nodiscard]] int legendHeight() const {
    const std::size_t lines = railDistances().size() + tenants_.size() + (drawsAlike() ? 1 : 0) +
                              (marksUplinks() ? 1 : 0) + (layout_.vfSquares ? 1 : 0);
    return static_cast<int>(lines) * lineHeight;
  }

  void drawLegend() {
    Point at{pictureMargin, layout_.height + 14};
    for (const auto distance : railDistances()) {
      svg_.rectangle({at.x, at.y - 13, distanceWidth, 18}, 9, "fill", colorOf(distance));
      svg_.text({at.x + distanceWidth / 2, at.y}, "pill", std::string(toString(distance)));
      explain(at, "rail: GPU and PF are " + std::string(legendPhrase(distance)));
    }
    if (drawsAlike()) {
      svg_.curve({at.x, at.y - 4}, {at.x + distanceWidth, at.y - 4}, "alike", "#52606d");
      explain(at, "another PF that is as near to the GPU");
    }
    if (marksUplinks()) {
      svg_.text({at.x + distanceWidth / 2, at.y}, "label middle warn", narrowMark);
      explain(at, "the uplink of a switch that is slower than a link below it");
    }
    for (const std::string& tenant : tenants_) {
      svg_.rectangle({at.x + 14, at.y - 10, 11, 11}, 2, "fill", tenantColor(tenants_, tenant));
      explain(at, "leased to " + fitted(tenant, 60));
    }
    if (layout_.vfSquares) {
      svg_.rectangle({at.x + 1, at.y - 12, vfSize, vfSize}, 2, "vf");
      svg_.rectangle({at.x + 1 + vfStep, at.y - 12, vfSize, vfSize}, 2, "novf");
      explain(at, "an existing free VF with its number; a VF that could be created");
    }
  }

  // The words of one line of the legend; `at` moves to the next one.
  void explain(Point& at, const std::string& words) {
    svg_.text({at.x + distanceWidth + 10, at.y}, "small", words);
    at.y += lineHeight;
  }

  static std::string_view legendPhrase(topology::Distance distance) {
    constexpr std::array<std::string_view, 6> phrases{"one",
                                                      "below one PCIe switch or port",
                                                      "several PCIe switches apart",
                                                      "a host bridge apart",
                                                      "on two host bridges of one NUMA node",
                                                      "on two NUMA nodes"};
    return phrases[static_cast<std::size_t>(distance)];
  }

  SvgWriter svg_;
  const TopologyWords& words_;
  TopologyLayout layout_;
  std::vector<std::string> tenants_;
  std::string title_;
};

constexpr const char* hostTitle = "PCI Express topology";

}  // namespace

void writeTopologySvg(std::ostream& out, const TopologyReport& report) {
  const TopologyWords words(report);
  pugi::xml_document document;
  Picture(words, hostTitle).draw(document);
  writeSvg(out, document);
}

void writeTopologySvg(std::ostream& out, const TopologyReport& host, const TopologyReport& guest,
                      const std::string& guestTitle) {
  const TopologyWords hostWords(host);
  const TopologyWords guestWords(guest);
  Picture first(hostWords, std::string(hostTitle) + " on the host");
  Picture second(guestWords, std::string(hostTitle) + " " + guestTitle);
  pugi::xml_document document;
  SvgWriter both(document);
  both.begin(first.width() + second.width(), std::max(first.height(), second.height()),
             std::string(hostTitle) + " on the host and " + guestTitle, svgStyle);
  first.draw(both.current());
  second.draw(both.current(), first.width());
  writeSvg(out, document);
}

}  // namespace vfpass::report
