#include "vfpass/base/program_file.hpp"

namespace vfpass {

namespace fs = std::filesystem;

fs::path programFile(const std::string& name) {
  std::error_code ignored;
  const fs::path prefix = fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
  for (const char* folder : {"libexec/vfpass", "libexec"}) {
    if (fs::exists(prefix / folder / name, ignored)) {
      return prefix / folder / name;
    }
  }
  return fs::path(VFPASS_LIBEXEC) / name;
}

}  // namespace vfpass
