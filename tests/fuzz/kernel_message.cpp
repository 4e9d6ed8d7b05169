// The kernel's log: records of /dev/kmsg, and lines as dmesg prints them. Devices choose parts of
// them.
// covers: src/base/kernel_formats.cpp src/doctor/kernel_lines.cpp -relevantKernelLog -LastLines
// -add -parseNode -addPart -parseNodeSet -cpusInMask -formatNodeSet -insert -oldestOf -drop -text
#include <string>

#include "fuzz/target.hpp"
#include "vfpass/base/kernel_formats.hpp"
#include "vfpass/base/text.hpp"
#include "vfpass/doctor/kernel_lines.hpp"

namespace vfpass::fuzz {
namespace {

constexpr std::size_t mostText = 1000;  // 240 bytes, each as \xNN, and three dots

void checkLine(const doctor::KernelLine& line) {
  requirePrintable(line.text);
  require(line.text.size() <= mostText, "a message has a bounded length");
}

}  // namespace

void runTarget(std::string_view input) {
  for (const std::string& record : splitLines(input)) {
    const auto text = kernelText(record);
    require(text.size() <= record.size(), "a message is a part of its record");
    if (const auto line = doctor::readKernelLine(text)) {
      checkLine(*line);
    }
  }
  const auto lines = doctor::readKernelLines(input);
  require(lines.size() <= splitLines(input).size(), "each line is one message at most");
  for (const auto& line : lines) {
    checkLine(line);
    require(!doctor::lastLineAbout(lines, line.devices).empty() || line.devices.empty(),
            "a device with a message has a last one");
  }
}

}  // namespace vfpass::fuzz
