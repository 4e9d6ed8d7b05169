#include "request.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "vfpass/base/text.hpp"
#include "vfpass/error.hpp"

namespace vfpass::hook {

std::string readXml(int descriptor) {
  constexpr std::size_t limit = std::size_t{16} << 20U;
  std::string xml;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count == 0) {
      return xml;
    }
    if (count < 0 && errno != EINTR) {
      throw Error("cannot read the domain XML from libvirt: " + errnoText(errno));
    }
    xml.append(buffer.data(), count < 0 ? 0 : static_cast<std::size_t>(count));
    if (xml.size() > limit) {
      throw Error("the domain XML is larger than 16 MiB");
    }
  }
}

}  // namespace vfpass::hook
