#include "request.hpp"

#include <cerrno>

#include "vfpass/base/bounded_read.hpp"
#include "vfpass/error.hpp"

namespace vfpass::hook {

std::string readXml(int descriptor) {
  constexpr std::size_t limit = std::size_t{16} << 20U;
  try {
    return readBounded(descriptor, limit);
  } catch (const ReadRefused& refused) {
    throw Error(refused.error() == EFBIG
                    ? "the domain XML is larger than 16 MiB"
                    : std::string("cannot read the domain XML from libvirt: ") + refused.what());
  }
}

}  // namespace vfpass::hook
