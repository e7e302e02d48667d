// Ends what level_target.h began: the last line of every file of kernels/cpu/levels. No include
// guard, because the next file of a batch ends its own part.
TROUPE_END_LEVEL
#undef TROUPE_LEVEL_NAMESPACE
#undef TROUPE_BEGIN_LEVEL
#undef TROUPE_END_LEVEL
#undef TROUPE_PRAGMA
