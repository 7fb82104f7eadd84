// Marks what libddp.so shows to programs; everything else in it is hidden.
#pragma once

#if defined(__GNUC__) || defined(__clang__)
#define DDP_API __attribute__((visibility("default")))
#else
#define DDP_API
#endif
