#include "program/gpu_option.hpp"

#include "vfpass/error.hpp"

namespace vfpass::probe {

void addGpuOption(CLI::App& command, GpuChoice& choice) {
  command
      .add_option_function<std::string>(
          "--gpu",
          [&choice](const std::string& text) {
            try {
              choice = parseGpuChoice(text);
            } catch (const Error& error) {
              throw CLI::ValidationError("--gpu",
                                         std::string(error.what()) + ": " + error.remedy());
            }
          },
          "GPU whose memory is used: a CUDA device index, or its PCI address in the guest")
      ->type_name("INDEX|DDDD:BB:DD.F")
      ->default_str("0");
}

}  // namespace vfpass::probe
