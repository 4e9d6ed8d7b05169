#include "nvlink_file.hpp"

#include "setup_paths.hpp"

namespace vfpass::setup {

WantedFile nvlinkOptions() {
  return {nvlinkFile,
          "# Written by `vfpass guest-setup` on the host; --undo removes it.\n"
          "options nvidia NVreg_NvLinkDisable=1\n",
          0644, "`nvlink: disabled`: the GPU initializes without the board's NVSwitches"};
}

// The parameter takes effect when the module is loaded, and an initramfs has a copy of modprobe.d.
std::string nvlinkNote(const SetupView& view) {
  if (view.nvlinkDisabled) {
    return {};
  }
  return "the guest's NVIDIA driver disables NVLink when it is loaded next: restart the guest; if "
         "the module is in its initramfs, run `update-initramfs -u` or `dracut -f` there first";
}

}  // namespace vfpass::setup
