// Before hwy/foreach_target.h: the engine's vector loops are built for AVX2, the baseline, and AVX-512.
#ifndef WEFT_RUNTIME_CPU_TARGETS_H_
#define WEFT_RUNTIME_CPU_TARGETS_H_
#define HWY_DISABLE_PCLMUL_AES  // not in x86-64-v3, and not used
#include "hwy/detect_targets.h"
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3)
#endif
