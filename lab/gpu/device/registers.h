/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registers in BAR0 of the stand-in GPU, for device and driver: read-only words of 32 bits. */
#ifndef STAND_IN_GPU_REGISTERS_H
#define STAND_IN_GPU_REGISTERS_H

#define STAND_IN_GPU_NAME "Stand-in GPU of the lab, no NVIDIA hardware"

#define STAND_IN_GPU_MAGIC 0x0
#define STAND_IN_GPU_MAGIC_VALUE 0x4742414c /* "LABG" */
#define STAND_IN_GPU_RESETS 0x4             /* function-level resets since the machine was switched on */
#define STAND_IN_GPU_NAME_AT 0x100          /* text, filled up with zeros */
#define STAND_IN_GPU_NAME_BYTES 64

#endif
