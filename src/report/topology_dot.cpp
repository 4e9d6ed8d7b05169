#include <ostream>

#include "topology_words.hpp"
#include "vfpass/base/text.hpp"

namespace vfpass::report {
namespace {

// A quoted string of the DOT language, in which only quote and backslash are special.
std::string dotString(const std::string& text) {
  std::string result = "\"";
  for (const char c : printable(text)) {
    result += c == '"' || c == '\\' ? "\\" : "";
    result += c;
  }
  return result + "\"";
}

class DotWriter {
 public:
  DotWriter(std::ostream& out, const TopologyWords& words) : out_(out), words_(words) {}

  void write(const topology::Branch& branch, const std::string& above) {
    for (const std::size_t device : branch.devices) {
      writeDevice(device, above);
    }
    for (const topology::Branch& inner : branch.branches) {
      const Device& port = words_.function(*inner.port);
      const std::string id = dotString(toString(port.address));
      out_ << "  " << id << " [shape=box, label=" << id << "];\n";
      edge(above, id, port);
      write(inner, id);
    }
  }

 private:
  void writeDevice(std::size_t device, const std::string& above) {
    const Device& function = words_.function(device);
    const std::string id = dotString(toString(function.address));
    const bool gpu = function.role == FunctionRole::gpu;
    out_ << "  " << id << " [shape=box, style=\"rounded,filled\", fillcolor=\""
         << (gpu ? "#e6f4d9" : "#e3eefb") << "\", label=" << dotString(words_.name(device))
         << "];\n";
    edge(above, id, function);
  }

  void edge(const std::string& above, const std::string& id, const Device& below) {
    out_ << "  " << above << " -- " << id << " [label=" << dotString(pcieText(below)) << "];\n";
  }

  std::ostream& out_;
  const TopologyWords& words_;
};

}  // namespace

void writeTopologyDot(std::ostream& out, const TopologyReport& report) {
  const TopologyWords words(report);
  DotWriter writer(out, words);
  const auto branches = words.branches();
  out << "graph topology {\n  node [fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\"];\n";
  for (std::size_t i = 0; i < branches.size(); ++i) {
    if (!branches[i].devices.empty() || !branches[i].branches.empty()) {
      const std::string id = dotString(words.topology().hostBridges[i].name);
      out << "  " << id << " [shape=box, style=bold, label=" << id << "];\n";
      writer.write(branches[i], id);
    }
  }
  for (const auto& rail : words.rails()) {
    if (rail.pf) {
      out << "  " << dotString(toString(words.function(rail.gpu).address)) << " -- "
          << dotString(toString(words.function(*rail.pf).address))
          << " [style=dashed, constraint=false, label="
          << dotString(std::string(toString(rail.distance))) << "];\n";
    }
  }
  out << "}\n";
}

}  // namespace vfpass::report
