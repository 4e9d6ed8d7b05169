#!/bin/bash
# regenerate.sh OUTPUT: compiles kernels.cu to PTX with Debian 12's clang, without any part of the CUDA toolkit.
#
# nvcc 13 writes PTX ISA 9.0, which drivers older than 580 refuse; R418 and later translate ISA 6.3 for sm_60. The
# first lines name the compiler and are removed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
output=${1:?usage: regenerate.sh OUTPUT}
clang=${CLANG:-clang++-14}

"$clang" -x cuda --cuda-device-only --cuda-path=/nonexistent -nocudainc -nocudalib \
    --cuda-gpu-arch=sm_60 -Xclang -target-feature -Xclang +ptx63 -Wno-unknown-cuda-version \
    -std=c++17 -O3 -ffreestanding -Wall -Wextra -Werror -S -o - "$here/kernels.cu" |
    sed '/^\/\//d; /^$/d' >"$output.new"
mv "$output.new" "$output"
